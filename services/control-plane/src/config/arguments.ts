import { Command, CommanderError, Option } from "commander";
import { StartFailure } from "../start-failure.ts";
import { type SettingSpec, settings, variableOf } from "./options.ts";
import type { ListenAddress, LogLevel } from "./service-config.ts";

/** What was said, by a flag or by its variable; what was not said is absent. */
export interface Given {
  readonly listen?: ListenAddress;
  readonly webListen?: ListenAddress | "off";
  readonly webAllowHost?: readonly string[];
  readonly webAllowOrigin?: readonly string[];
  readonly dataDir?: string;
  readonly cluster?: "embedded" | "kubernetes";
  readonly kubeconfig?: string;
  readonly namespace?: string;
  readonly template?: string;
  readonly disk?: "block" | "filesystem";
  readonly probe?: "refuse" | "report";
  readonly ingress?: "verify" | "unverified";
  readonly agentAddress?: "pod-ip" | "service";
  readonly agentDir?: string;
  readonly allowFaults?: boolean;
  readonly insecure?: boolean;
  readonly logLevel?: LogLevel;
}

export type ParsedArguments =
  | {
      readonly t: "given";
      readonly mode: "serve" | "cluster";
      readonly given: Given;
      /** The settings that were said by a flag, not by a variable. */
      readonly flags: ReadonlySet<string>;
    }
  | { readonly t: "print"; readonly text: string };

/** The version that `--version` prints. */
export const serviceVersion = "0.1.0";

/** Parses the command line and fills in from the environment. An empty variable counts as unset. */
export function parseArguments(argv: readonly string[], env: NodeJS.ProcessEnv): ParsedArguments {
  let printed = "";
  let mode = "serve" as "serve" | "cluster"; // changed by what the parser calls
  const given: Record<string, unknown> = {};
  const program = new Command("holdfast")
    .description("A gRPC control plane for long-lived workspaces on Kubernetes")
    .version(serviceVersion)
    .helpOption("-h, --help", "print this")
    .helpCommand(false)
    .exitOverride()
    .configureOutput({ writeOut: (text) => (printed += text), writeErr: () => undefined })
    .addHelpText(
      "after",
      "\nModes:\n  serve    serve workspaces (the default)\n  cluster  the embedded cluster alone\n\n" +
        `Each flag has a variable, as ${variableOf("data-dir")}; the flag wins.`,
    )
    .argument("[mode]", "serve or cluster", (text) => modeOf(text), "serve")
    .action((chosen: "serve" | "cluster") => {
      mode = chosen;
    });
  for (const setting of settings) program.addOption(optionOf(setting, given));
  try {
    program.parse([...argv], { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode === 0) return { t: "print", text: printed };
    throw new StartFailure(`${error.message.replace(/^error: /, "")} (--help lists the flags)`);
  }
  const flags = new Set(settings.map(({ name }): string => name).filter((name) => keyOf(name) in given));
  if (mode === "cluster") assertForCluster(flags);
  for (const setting of meantFor(mode)) fillFromEnvironment(setting, env, given);
  return { t: "given", mode, given: given as Given, flags };
}

/** A variable may be there for a service that is started beside; what it does not concern does not read it. */
function meantFor(mode: "serve" | "cluster"): readonly SettingSpec[] {
  const all: readonly SettingSpec[] = settings;
  return mode === "serve" ? all : all.filter(({ forCluster }) => forCluster === true);
}

function assertForCluster(flags: ReadonlySet<string>): void {
  const known = meantFor("cluster").map(({ name }) => name);
  const lost = [...flags].filter((name) => !known.includes(name)).map((name) => `--${name}`);
  if (lost.length === 0) return;
  throw new StartFailure(
    `${lost.join(", ")} would do nothing: the embedded cluster alone takes ${known.map((name) => `--${name}`).join(", ")}; nothing was started. The others are for npm start`,
  );
}

function keyOf(name: string): string {
  return new Option(`--${name}`).attributeName();
}

function modeOf(text: string): "serve" | "cluster" {
  if (text === "serve" || text === "cluster") return text;
  throw new StartFailure(`"${text}" is no mode; there are serve and cluster (--help lists the flags)`);
}

function optionOf(setting: SettingSpec, given: Record<string, unknown>): Option {
  const flag = setting.value === undefined ? `--${setting.name}` : `--${setting.name} <${setting.value}>`;
  const preset = setting.preset === undefined ? "" : ` (default: ${setting.preset})`;
  const option = new Option(flag, `${setting.help}${preset}`);
  // A switch reaches the parser without a text.
  return option.argParser((text: string | undefined) => {
    const key = option.attributeName();
    // Or the flag that follows is taken for the value of one that was left without.
    if (text?.startsWith("--")) throw new StartFailure(`--${setting.name} needs a value; ${text} follows it`);
    const value = checkedValue(setting, text ?? "true", `--${setting.name}`);
    const before = setting.repeatable ? given[key] : undefined;
    given[key] = Array.isArray(before) && Array.isArray(value) ? [...before, ...value] : value;
  });
}

function fillFromEnvironment(setting: SettingSpec, env: NodeJS.ProcessEnv, given: Record<string, unknown>): void {
  const variable = variableOf(setting.name);
  const text = env[variable];
  const key = keyOf(setting.name);
  if (text === undefined || text === "" || given[key] !== undefined) return;
  given[key] = checkedValue(setting, text, variable);
}

function checkedValue(setting: SettingSpec, text: string, said: string): unknown {
  const reading = setting.read(text);
  if ("value" in reading) return reading.value;
  throw new StartFailure(`${said} must be ${reading.wanted}; it is ${JSON.stringify(text)}`);
}
