import { join } from "node:path";
import { listenDefault, webListenDefault } from "@holdfast/contract";
import { StartFailure } from "../start-failure.ts";
import { type Given, parseArguments } from "./arguments.ts";
import { isLoopback, parseListenAddress } from "./listen-address.ts";
import { addressText, type ListenAddress, type ServiceConfig, type WebConfig } from "./service-config.ts";

/** What the command line asks for: a service, or a text to print. */
export type Asked =
  | { readonly t: "run"; readonly config: ServiceConfig }
  | { readonly t: "print"; readonly text: string };

/**
 * Reads flags and `HOLDFAST_*` variables; throws a StartFailure that names the flag or variable at fault. Touches no file.
 * @param agentDirDefault where the launcher puts the bundled agent
 */
export function readConfig(argv: readonly string[], env: NodeJS.ProcessEnv, agentDirDefault: string): Asked {
  const asked = parseArguments(argv, env);
  if (asked.t === "print") return asked;
  const { mode, given, flags } = asked;
  const embedded = (given.cluster ?? "embedded") === "embedded";
  const listen = given.listen ?? defaultAddress(listenDefault);
  const web = webOf(given);
  assertNotExposed("--listen", listen, given);
  if (web) assertNotExposed("--web-listen", web.listen, given);
  if (embedded && given.kubeconfig !== undefined) {
    throw new StartFailure("--kubeconfig is for --cluster kubernetes; the embedded cluster writes its own");
  }
  if (embedded && given.agentAddress === "service") {
    throw new StartFailure("--agent-address service is for --cluster kubernetes; the embedded cluster has no names");
  }
  if (!embedded && given.allowFaults === true) {
    throw new StartFailure("--allow-faults is for the embedded cluster; a real one has no fault knobs");
  }
  for (const flag of ["data-dir", "agent-dir"]) {
    if (!embedded && flags.has(flag))
      throw new StartFailure(`--${flag} is for the embedded cluster; a real one has its own`);
  }
  return {
    t: "run",
    config: {
      mode,
      listen,
      web,
      dataDir: given.dataDir ?? join(process.cwd(), ".holdfast"),
      cluster: embedded ? "embedded" : "kubernetes",
      kubeconfig: given.kubeconfig,
      namespace: given.namespace,
      template: given.template ?? (embedded ? "default" : undefined),
      disk: given.disk ?? (embedded ? "filesystem" : "block"),
      probe: given.probe ?? (embedded ? undefined : "refuse"),
      ingress: given.ingress ?? (embedded ? "unverified" : "verify"),
      agentAddress: given.agentAddress ?? "pod-ip",
      agentDir: given.agentDir ?? agentDirDefault,
      allowFaults: given.allowFaults ?? false,
      logLevel: given.logLevel ?? "info",
    },
  };
}

function webOf({
  webListen = defaultAddress(webListenDefault),
  webAllowHost,
  webAllowOrigin,
}: Given): WebConfig | undefined {
  if (webListen === "off") return undefined;
  return { listen: webListen, allowHosts: webAllowHost ?? [], allowOrigins: webAllowOrigin ?? [] };
}

function assertNotExposed(flag: string, listen: ListenAddress, { insecure }: Given): void {
  if (isLoopback(listen) || insecure === true) return;
  throw new StartFailure(
    `${flag} ${addressText(listen)} can be reached from other machines, and the service has no authentication; ` +
      "nothing was started. Listen on 127.0.0.1 or [::1], or say --insecure",
  );
}

function defaultAddress(text: string): ListenAddress {
  const address = parseListenAddress(text);
  if (!address) throw new StartFailure(`the default address ${text} cannot be read`);
  return address;
}
