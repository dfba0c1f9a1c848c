import { PortService } from "@holdfast/api/holdfast/guest/v1/port_pb";
import { tunnelsMax } from "@holdfast/contract";
import { AnsweredError, type Router } from "@holdfast/guest-link";
import { invalid } from "../execution/start-wish.ts";
import type { Fence } from "../fence/fence.ts";
import { Tunnel } from "./tunnel.ts";

export interface PortsServed {
  readonly fence: Fence;
  /** The agent's own, which is not reached through itself. */
  readonly ownPort: () => number;
  /** Nothing new is connected any more. */
  readonly isRetired: () => boolean;
}

const hosts = ["127.0.0.1", "::1"];
const portMax = 65_535;

/** Serves connections to programs of the guest, on its loopback (G31). */
export function routePorts(router: Router, { fence, ownPort, isRetired }: PortsServed): void {
  let open = 0;
  router.tunnel(PortService.method.connect, async ({ port, host: wished }, upload, stream) => {
    const { epoch } = stream.context;
    const host = wished === "" ? "127.0.0.1" : wished;
    if (port < 1 || port > portMax) throw invalid("port", `must be 1 to ${portMax}`);
    if (!hosts.includes(host)) throw invalid("host", `must be one of ${hosts.join(", ")}`);
    if (isRetired()) {
      throw new AnsweredError("AGENT_RETIRING", "Nothing was connected: the guest has been asked to stop.");
    }
    if (port === ownPort()) {
      throw new AnsweredError("PORT_REFUSED", `Port ${port} is the guest agent's own and is not reached this way.`, {
        port: String(port),
        cause: "agent",
      });
    }
    if (open >= tunnelsMax) {
      throw new AnsweredError(
        "STREAM_CAPACITY",
        `The guest carries ${tunnelsMax} connections to ports at once (tunnelsMax). Nothing was connected; end one.`,
        { limit: String(tunnelsMax), setting: "tunnelsMax" },
      );
    }
    open += 1;
    const tunnel = new Tunnel(stream, upload, { host, port });
    let forget = (): void => undefined;
    try {
      // Judged in the step in which it is dialled, and ended when another holder takes the guest.
      forget = fence.onRaise(epoch, (why) => {
        stream.endByForce(why);
        tunnel.end(why);
      });
      await tunnel.run();
    } finally {
      forget();
      open -= 1;
    }
  });
}
