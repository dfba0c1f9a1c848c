import { Command, InvalidArgumentError, Option } from "commander";
import manifest from "../package.json" with { type: "json" };
import { copy } from "./commands/copy.ts";
import { exec } from "./commands/exec.ts";
import { list } from "./commands/list.ts";
import { listFiles } from "./commands/list-files.ts";
import { open } from "./commands/open.ts";
import { remove } from "./commands/remove.ts";
import { resume } from "./commands/resume.ts";
import { suspend } from "./commands/suspend.ts";
import { type Connection, connectionTo } from "./connection.ts";
import { UsageError } from "./failure.ts";

/** What every command is given. */
export interface Session {
  readonly connection: Connection;
  /** Print the API's messages as JSON, for programs. */
  readonly json: boolean;
  /** Aborts at Ctrl-C, and when nobody reads the output any more. */
  readonly signal: AbortSignal;
}

/** The command line. */
export function programOf(signal: AbortSignal): Command {
  const program = new Command("holdfast")
    .description("Opens workspaces, runs commands in them, copies files, and puts them to sleep.")
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
      "\nA workspace's file is written ID:PATH, as build:src/main.c. Exit codes: 0; 1 when a call fails; 2 for a wrong command line;\nexec passes the command's own through (128 + n for signal n), and is 125 when the call itself fails.",
    );
  const session = ({ json: here }: { readonly json?: true }): Session => {
    const { server, json } = program.opts<{ server: string; json?: true }>();
    return { connection: connectionTo(server), json: (json ?? here) === true, signal };
  };

  command(program, "open <workspace>", "create a workspace, or adopt and wake the one that stands")
    .option("--template <name>", "the SandboxTemplate; default: the service's")
    .addOption(
      new Option("--create <policy>", "whether it may be made")
        .choices(["if-absent", "must-exist", "must-create"])
        .default("if-absent"),
    )
    .option("--timeout <seconds>", "how long it may take", seconds)
    .action((workspace, options) => open(session(options), workspace, options));
  command(program, "exec <workspace> <command> [args...]", "run a command and stream what it prints")
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
  command(program, "ls <workspace:path>", "list a directory of a workspace")
    .option("-R, --recursive", "the whole tree")
    .option("-a, --all", "also names that begin with '.'")
    .action((location, options) => listFiles(session(options), location, options));
  command(
    program,
    "cp <from> <to>",
    "copy a file into a workspace, out of one, or between two; '-' is this program's stream",
  )
    .option("-r, --recursive", "copy directories")
    .action((from, to, options) => copy(session(options), from, to, options));
  command(program, "suspend <workspace>", "stop its pod and keep its disk")
    .option("--timeout <seconds>", "how long it may take", seconds)
    .action((workspace, options) => suspend(session(options), workspace, options));
  command(program, "resume <workspace>", "bring a new pod to its disk")
    .option("--timeout <seconds>", "how long it may take", seconds)
    .action((workspace, options) => resume(session(options), workspace, options));
  command(program, "list", "list workspaces, waking none")
    .option("--prefix <text>", "only ids that begin so")
    .option("--template <name>", "only those of this template")
    .addOption(new Option("--mode <mode>", "only these").choices(["running", "suspended"]))
    .action((options) => list(session(options), options));
  command(program, "rm <workspace[:path]>", "remove a file; or, with --delete-disk, a workspace and its disk for good")
    .option("-r, --recursive", "also what a directory contains")
    .option("--delete-disk", "delete the whole workspace with its disk")
    .action((target, options) => remove(session(options), target, options));
  return program;
}

function command(program: Command, usage: string, description: string): Command {
  return program.command(usage).description(description).option("--json", "print the API's messages as JSON");
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
