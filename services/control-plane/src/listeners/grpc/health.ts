import type { DescService } from "@bufbuild/protobuf";
import type * as grpc from "@grpc/grpc-js";
import { HealthImplementation } from "grpc-health-check";

/** `grpc.health.v1` for the whole server ("") and for each service. */
export class Health {
  readonly #names: readonly string[];
  readonly #health: HealthImplementation;

  constructor(services: readonly DescService[]) {
    this.#names = ["", ...services.map(({ typeName }) => typeName)];
    this.#health = new HealthImplementation();
    this.set("SERVING");
  }

  addTo(server: grpc.Server): void {
    this.#health.addToServer(server);
  }

  /** Tells everyone who asks or watches. */
  set(status: "SERVING" | "NOT_SERVING"): void {
    for (const name of this.#names) this.#health.setStatus(name, status);
  }
}
