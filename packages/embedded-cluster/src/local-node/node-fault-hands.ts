import { type NodeFaultActions, type NodeFaultPoints, NoSuchPodError, type PodPlace } from "../faults/node-faults.ts";
import type { AddressCuts } from "./address-cuts.ts";
import type { PodRunner } from "./pod-runner.ts";

/** No rule holds any pod up. */
export const noFaults: NodeFaultPoints = {
  beforeScheduling: async () => undefined,
  beforeStart: async () => undefined,
  imagePullError: () => undefined,
};

/** What a node does to one of its pods when it is told to. */
export class NodeFaultHands implements NodeFaultActions {
  readonly #find: (place: PodPlace) => PodRunner | undefined;
  readonly #cuts: AddressCuts;

  constructor(find: (place: PodPlace) => PodRunner | undefined, cuts: AddressCuts) {
    this.#find = find;
    this.#cuts = cuts;
  }

  async evict(pod: PodPlace, message = "The node was low on resource: memory."): Promise<void> {
    await this.#require(pod).evict(message);
  }

  async killContainer(pod: PodPlace, container?: string): Promise<void> {
    if (!(await this.#require(pod).kill(container))) throw new NoSuchPodError(pod);
  }

  async cutAddress(pod: PodPlace): Promise<() => Promise<void>> {
    const { ip } = this.#require(pod);
    if (ip === undefined) throw new NoSuchPodError(pod);
    return this.#cuts.cut(ip);
  }

  #require(place: PodPlace): PodRunner {
    const runner = this.#find(place);
    if (runner === undefined) throw new NoSuchPodError(place);
    return runner;
  }
}
