import type { DescService } from "@bufbuild/protobuf";
import type * as grpc from "@grpc/grpc-js";
import { HealthImplementation } from "grpc-health-check";

type Watch = grpc.ServerWritableStream<{ service: string }, unknown>;

/** Stands for every name that is not ours. */
const anyOtherName = "\0";

/** `grpc.health.v1` for the whole server ("") and for each service. */
export class Health {
  readonly #names: ReadonlySet<string>;
  readonly #health = new HealthImplementation();
  readonly #watching = new Set<Watch>();

  constructor(services: readonly DescService[]) {
    this.#names = new Set(["", ...services.map(({ typeName }) => typeName)]);
    this.set("SERVING");
  }

  addTo(server: grpc.Server): void {
    this.#health.addToServer({
      addService: (definition, { watch, ...others }) => {
        // Restated types of grpc-js, which grpc-health-check does not import.
        const begin = watch as unknown as grpc.handleServerStreamingCall<{ service: string }, unknown>;
        server.addService(definition, { ...others, watch: (call: Watch) => this.#watch(call, begin) });
      },
    });
  }

  /** Tells everyone who asks or watches. */
  set(status: "SERVING" | "NOT_SERVING"): void {
    for (const name of this.#names) this.#health.setStatus(name, status);
  }

  /** Ends the streams of those who watch, which would never end by themselves. */
  endWatches(): void {
    for (const call of this.#watching) call.end();
  }

  #watch(call: Watch, begin: (call: Watch) => void): void {
    // The library keeps an entry for every name that was ever watched: a client must not choose how many.
    if (!this.#names.has(call.request.service)) call.request.service = anyOtherName;
    this.#watching.add(call);
    call.once("cancelled", () => this.#watching.delete(call));
    begin(call);
  }
}
