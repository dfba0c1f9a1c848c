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
  | { readonly t: "given"; readonly mode: "serve" | "cluster"; readonly given: Given }
  | { readonly t: "print"; readonly text: string };

/** The version that `--version` prints. */
export const serviceVersion = "0.1.0";

/** Parses the command line and fills in from the environment. An empty variable counts as unset. */
export function parseArguments(argv: readonly string[], env: NodeJS.ProcessEnv): ParsedArguments {
  let printed = "";
  let mode: "serve" | "cluster" = "serve";
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
  for (const setting of settings) fillFromEnvironment(setting, env, given);
  return { t: "given", mode, given: given as Given };
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
    const value = checkedValue(setting, text ?? "true", `--${setting.name}`);
    const before = setting.repeatable ? given[key] : undefined;
    given[key] = Array.isArray(before) && Array.isArray(value) ? [...before, ...value] : value;
  });
}

function fillFromEnvironment(setting: SettingSpec, env: NodeJS.ProcessEnv, given: Record<string, unknown>): void {
  const variable = variableOf(setting.name);
  const text = env[variable];
  const key = new Option(`--${setting.name}`).attributeName();
  if (text === undefined || text === "" || given[key] !== undefined) return;
  given[key] = checkedValue(setting, text, variable);
}

function checkedValue(setting: SettingSpec, text: string, said: string): unknown {
  const reading = setting.read(text);
  if ("value" in reading) return reading.value;
  throw new StartFailure(`${said} must be ${reading.wanted}; it is ${JSON.stringify(text)}`);
}
