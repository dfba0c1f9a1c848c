import type { DescService } from "@bufbuild/protobuf";
import * as grpc from "@grpc/grpc-js";
import { callsPerConnectionMax, clientPingEveryMs, clientPingTimeoutMs, requestMaxBytes } from "@holdfast/contract";
import type { Logger } from "pino";
import { addressText, type ListenAddress } from "../../config/service-config.ts";
import type { ServedMethod } from "../../rpc/interceptors/call-pipeline.ts";
import { StartFailure } from "../../start-failure.ts";
import { whyNot } from "../free-port.ts";
import { noticeClientEnd } from "./client-end.ts";
import { grpcServiceOf } from "./grpc-service.ts";
import { Health } from "./health.ts";
import { reasonForNativeStatus } from "./reason-for-native-status.ts";
import { raiseReceiveWindows } from "./receive-windows.ts";
import { addReflection } from "./reflection.ts";

export interface GrpcListenerInit {
  readonly listen: ListenAddress;
  readonly services: ReadonlyMap<DescService, readonly ServedMethod[]>;
  readonly logger: Logger;
}

/** The gRPC listener: our services, health and reflection on one port, without TLS. */
export class GrpcListener {
  readonly #server: grpc.Server;
  readonly #health: Health;
  readonly address: ListenAddress;

  private constructor(server: grpc.Server, health: Health, address: ListenAddress) {
    this.#server = server;
    this.#health = health;
    this.address = address;
  }

  /** Listens, or throws a StartFailure that says why it cannot. */
  static async open({ listen, services, logger }: GrpcListenerInit): Promise<GrpcListener> {
    grpc.setLogger(quietLogger(logger));
    const server = new grpc.Server({
      "grpc.max_receive_message_length": requestMaxBytes,
      "grpc.max_send_message_length": -1,
      "grpc.max_concurrent_streams": callsPerConnectionMax,
      "grpc.keepalive_time_ms": clientPingEveryMs,
      "grpc.keepalive_timeout_ms": clientPingTimeoutMs,
      "grpc.enable_channelz": 0,
      interceptors: [reasonForNativeStatus, noticeClientEnd],
    });
    if (!raiseReceiveWindows(server))
      logger.warn("this grpc-js does not let receive windows be raised: uploads are slow over long distances");
    const descriptors = [...services.keys()];
    for (const [service, methods] of services) {
      const { definition, implementation } = grpcServiceOf(service, methods);
      server.addService(definition, implementation);
    }
    const health = new Health(descriptors);
    health.addTo(server);
    addReflection(server, descriptors);
    const port = await bind(server, listen);
    return new GrpcListener(server, health, { host: listen.host, port });
  }

  /** Answers health checks with NOT_SERVING from now on. */
  announceDrain(): void {
    this.#health.set("NOT_SERVING");
  }

  /** Closes: takes no new connection, waits for calls until the signal aborts, then ends what is left. */
  async close(signal: AbortSignal): Promise<void> {
    await new Promise<void>((resolve) => {
      const force = (): void => {
        this.#server.forceShutdown();
        resolve();
      };
      if (signal.aborted) {
        force();
        return;
      }
      signal.addEventListener("abort", force, { once: true });
      this.#health.endWatches();
      this.#server.tryShutdown(() => {
        signal.removeEventListener("abort", force);
        resolve();
      });
    });
  }
}

async function bind(server: grpc.Server, listen: ListenAddress): Promise<number> {
  const address = addressText(listen);
  try {
    return await new Promise((resolve, reject) => {
      server.bindAsync(address, grpc.ServerCredentials.createInsecure(), (error, port) =>
        error ? reject(error) : resolve(port),
      );
    });
  } catch (error) {
    server.forceShutdown();
    throw new StartFailure(`cannot listen on ${address}: ${whyNot(error)}`, error);
  }
}

/** grpc-js writes to the console by default; what it has to say belongs in our log. */
function quietLogger(logger: Logger): Partial<Console> {
  const line = (message?: unknown): void => logger.debug({ from: "grpc-js" }, String(message));
  return { error: line, info: line, debug: line };
}
