import { Command, InvalidArgumentError, Option } from "commander";
import manifest from "../package.json" with { type: "json" };
import { copy } from "./commands/copy.ts";
import { exec } from "./commands/exec.ts";
import { forward } from "./commands/forward.ts";
import { list } from "./commands/list.ts";
import { listFiles } from "./commands/list-files.ts";
import { open } from "./commands/open.ts";
import { remove } from "./commands/remove.ts";
import { resume } from "./commands/resume.ts";
import { killSession, sessions } from "./commands/sessions.ts";
import { shell } from "./commands/shell.ts";
import { show } from "./commands/show.ts";
import { suspend } from "./commands/suspend.ts";
import { type Connection, connectionTo } from "./connection.ts";
import { UsageError } from "./failure.ts";
import { holderEpochOf } from "./holder-epoch.ts";
import { detachKeyOf } from "./terminal/detach-key.ts";

/** What every command is given. */
export interface Session {
  readonly connection: Connection;
  /** As whose holder every call acts; undefined: where nobody has fenced. */
  readonly holderEpoch: bigint | undefined;
  /** Print the API's messages as JSON, for programs. */
  readonly json: boolean;
  /** Aborts at Ctrl-C, and when nobody reads the output any more. */
  readonly signal: AbortSignal;
}

/** The command line. */
export function programOf(signal: AbortSignal): Command {
  const program = new Command("holdfast")
    .description("Opens workspaces, runs commands and terminals in them, copies files, and puts them to sleep.")
    .addOption(
      new Option("--server <host:port>", "where the service listens").env("HOLDFAST_SERVER").default("127.0.0.1:50051"),
    )
    .option("--json", "print the API's messages as JSON")
    .version(manifest.version)
    .enablePositionalOptions()
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, "holdfast: ")) })
    .addHelpText(
      "after",
      "\nA workspace's file is written ID:PATH, as build:src/main.c. Exit codes: 0; 1 when a call fails; 2 for a wrong command line;\nexec and sh pass the command's own through (128 + n for signal n), and are 125 when the call itself fails;\nsh is 0 when it was detached.",
    );
  const session = ({ json: here, holderEpoch }: { readonly json?: true; readonly holderEpoch?: bigint }): Session => {
    const { server, json } = program.opts<{ server: string; json?: true }>();
    return { connection: connectionTo(server, holderEpoch), holderEpoch, json: (json ?? here) === true, signal };
  };

  change(program, "open <workspace>", "create a workspace, or adopt and wake the one that stands")
    .option("--template <name>", "the SandboxTemplate; default: the service's")
    .addOption(
      new Option("--create <policy>", "whether it may be made")
        .choices(["if-absent", "must-exist", "must-create"])
        .default("if-absent"),
    )
    .option("--timeout <seconds>", "how long it may take", seconds)
    .action((workspace, options) => open(session(options), workspace, options));
  change(program, "exec <workspace> <command> [args...]", "run a command and stream what it prints")
    .passThroughOptions()
    .option("--cwd <path>", "the working directory; default: the workspace's root")
    .option("-e, --env <name=value>", "add to its environment (repeatable)", collected, [])
    .option("-i, --stdin", "pass this program's standard input, up to its end (at most 3 MiB)")
    .option("--timeout <seconds>", "end it after this time", seconds)
    .action((workspace, file, args, options) => {
      // What follows "--" is the command; commander leaves the dashes where options are passed through.
      const words = file === "--" ? args : [file, ...args];
      if (file !== "--" && file.startsWith("-"))
        throw new UsageError(`exec takes its options before the workspace; a program named "${file}" goes after --`);
      if (words.length === 0) throw new UsageError("exec needs a command");
      return exec(session(options), workspace, words, options);
    });
  change(program, "sh <workspace> [command...]", "a terminal in a workspace: a shell, or a command; or one that stands")
    .option("--session <id>", "attach to this session instead (see sessions)")
    .option("--observe", "only look on; with --session")
    .option("--ephemeral", "the program ends with this client, instead of going on without it")
    .option("--cwd <path>", "the working directory; default: the workspace's root")
    .option("-e, --env <name=value>", "add to its environment (repeatable)", collected, [])
    .addOption(
      new Option("--detach-key <key>", 'the key that detaches, as "ctrl-]"; "none" for none')
        .env("HOLDFAST_DETACH_KEY")
        .default(detachKeyOf("ctrl-]"), '"ctrl-]"')
        .argParser(detachKeyOf),
    )
    .action((workspace, words, options) => {
      if (options.session !== undefined && words.length > 0) throw new UsageError("--session runs no command");
      if (options.session !== undefined && options.ephemeral) throw new UsageError("--ephemeral is for a new session");
      if (options.observe && options.session === undefined) throw new UsageError("--observe needs --session");
      return shell(session(options), workspace, words, options);
    });
  command(program, "sessions <workspace>", "list its terminals and detached programs").action((workspace, options) =>
    sessions(session(options), workspace),
  );
  change(program, "kill-session <workspace> <session>", "end a session and all that it left behind")
    .option("--signal <name>", "only send this signal")
    .action((workspace, id, options) => killSession(session(options), workspace, id, options));
  change(
    program,
    "forward <workspace> <[local:]port>",
    "pass connections to this machine on to a port of a workspace",
  ).action((workspace, ports, options) => forward(session(options), workspace, ports));
  command(program, "ls <workspace:path>", "list a directory of a workspace")
    .option("-R, --recursive", "the whole tree")
    .option("-a, --all", "also names that begin with '.'")
    .action((location, options) => listFiles(session(options), location, options));
  change(
    program,
    "cp <from> <to>",
    "copy a file into a workspace, out of one, or between two; '-' is this program's stream",
  )
    .option("-r, --recursive", "copy directories")
    .action((from, to, options) => copy(session(options), from, to, options));
  change(program, "suspend <workspace>", "stop its pod and keep its disk")
    .option("--timeout <seconds>", "how long it may take", seconds)
    .action((workspace, options) => suspend(session(options), workspace, options));
  change(program, "resume <workspace>", "bring a new pod to its disk")
    .option("--timeout <seconds>", "how long it may take", seconds)
    .action((workspace, options) => resume(session(options), workspace, options));
  command(
    program,
    "show <workspace>",
    "tell how it stands: its pod, disk and memory, and what is held open; wakes nothing",
  ).action((workspace, options) => show(session(options), workspace));
  command(program, "list", "list workspaces, waking none")
    .option("--prefix <text>", "only ids that begin so")
    .option("--template <name>", "only those of this template")
    .addOption(new Option("--mode <mode>", "only these").choices(["running", "suspended"]))
    .action((options) => list(session(options), options));
  change(program, "rm <workspace[:path]>", "remove a file; or, with --delete-disk, a workspace and its disk for good")
    .option("-r, --recursive", "also what a directory contains")
    .option("--delete-disk", "delete the whole workspace with its disk")
    .action((target, options) => remove(session(options), target, options));
  return program;
}

function command(program: Command, usage: string, description: string): Command {
  return program.command(usage).description(description).option("--json", "print the API's messages as JSON");
}

/** A command that may change something, and so may have to say who acts. */
function change(program: Command, usage: string, description: string): Command {
  return command(program, usage, description).addOption(
    new Option(
      "--holder-epoch <n>",
      "act as the holder of this number; needed once the workspace is fenced above 0",
    ).argParser(holderEpochOf),
  );
}

function seconds(text: string): number {
  const value = Number(text);
  if (!(value > 0) || !Number.isFinite(value))
    throw new InvalidArgumentError("It must be a number of seconds above 0.");
  return value;
}

function collected(value: string, before: readonly string[]): readonly string[] {
  return [...before, value];
}
