import { type Clock, pause, untilAborted } from "../clock.ts";
import type { KubeObject } from "../resource-api.ts";
import type { NodeRule } from "./faults.ts";
import {
  type NodeFaultActions,
  type NodeFaultPoints,
  type NodeFaults,
  NoSuchPodError,
  type PodMatch,
  type PodPlace,
  type Undo,
} from "./node-faults.ts";

/** One rule that stands, as it is told to people. */
export interface StandingNodeRule {
  readonly rule: NodeRule;
  readonly met: number;
  /** Aborts when it is taken back. */
  readonly undone: AbortSignal;
  /** Takes it back; resolves when what it did is mended. */
  readonly undo: () => Promise<void>;
}

class Standing implements StandingNodeRule {
  readonly rule: NodeRule;
  met = 0;
  readonly #undone = new AbortController();
  readonly #mend: () => Promise<void>;
  #mended: Promise<void> | undefined;

  constructor(rule: NodeRule, mend: () => Promise<void> = async () => undefined) {
    this.rule = rule;
    this.#mend = mend;
  }

  get undone(): AbortSignal {
    return this.#undone.signal;
  }

  readonly undo = (): Promise<void> => {
    this.#undone.abort();
    this.#mended ??= this.#mend();
    return this.#mended;
  };
}

/** The node's fault rules: what tests set and what the node asks. The node brings the actions when it has started. */
export class NodeFaultRules implements NodeFaults, NodeFaultPoints {
  readonly #clock: Clock;
  readonly #rules = new Set<Standing>();
  readonly #onAdded: (standing: StandingNodeRule) => void;
  #actions: NodeFaultActions | undefined;

  constructor(clock: Clock, onAdded: (standing: StandingNodeRule) => void = () => undefined) {
    this.#clock = clock;
    this.#onAdded = onAdded;
  }

  /** The node that carries out the actions; undefined when it has stopped. */
  useNode(actions: NodeFaultActions | undefined): void {
    this.#actions = actions;
  }

  holdScheduling(pods: PodMatch = {}, message?: string): Undo {
    return voidly(this.add({ node: "holdScheduling", pods, ...said(message) }).undo);
  }

  delayStart(ms: number, pods: PodMatch = {}): Undo {
    return voidly(this.add({ node: "delayStart", pods, ms }).undo);
  }

  failImagePull(pods: PodMatch = {}, message?: string): Undo {
    return voidly(this.add({ node: "failImagePull", pods, ...said(message) }).undo);
  }

  async evict(pod: PodPlace, message?: string): Promise<void> {
    await this.#nodeFor(pod).evict(pod, message);
  }

  async killContainer(pod: PodPlace, container?: string): Promise<void> {
    await this.#nodeFor(pod).killContainer(pod, container);
  }

  async cutAddress(pod: PodPlace): Promise<() => Promise<void>> {
    return (await this.cut(pod)).undo;
  }

  /** As cutAddress, as a rule that stands until it is undone. */
  async cut(pod: PodPlace): Promise<StandingNodeRule> {
    const mend = await this.#nodeFor(pod).cutAddress(pod);
    return this.#stand(new Standing({ node: "cutAddress", pods: pod }, mend));
  }

  /** Adds a rule that lasts until it is undone. */
  add(rule: NodeRule): StandingNodeRule {
    return this.#stand(new Standing(rule));
  }

  async beforeScheduling(pod: KubeObject, say: (why: string) => void, signal: AbortSignal): Promise<void> {
    let said: string | undefined;
    for (;;) {
      const held = this.#find("holdScheduling", pod);
      if (held === undefined || signal.aborted) return;
      const { message = "0/1 nodes are available: a fault rule refuses this pod" } = held.rule;
      if (said === undefined) held.met++;
      if (said !== message) say(message);
      said = message;
      await untilAborted(AbortSignal.any([signal, held.undone]));
    }
  }

  async beforeStart(pod: KubeObject, signal: AbortSignal): Promise<void> {
    const slow = this.#find("delayStart", pod);
    if (slow === undefined) return;
    slow.met++;
    await pause(this.#clock, slow.rule.ms ?? 0, AbortSignal.any([signal, slow.undone]));
  }

  imagePullError(pod: KubeObject, image: string): string | undefined {
    const failing = this.#find("failImagePull", pod);
    if (failing === undefined) return undefined;
    failing.met++;
    return `Failed to pull image "${image}": ${failing.rule.message ?? "a fault rule refuses it"}`;
  }

  #stand(standing: Standing): Standing {
    this.#rules.add(standing);
    standing.undone.addEventListener("abort", () => this.#rules.delete(standing), { once: true });
    this.#onAdded(standing);
    return standing;
  }

  #find(node: NodeRule["node"], pod: KubeObject): Standing | undefined {
    return [...this.#rules].find(({ rule }) => rule.node === node && isMeant(rule.pods, pod));
  }

  #nodeFor(pod: PodPlace): NodeFaultActions {
    if (this.#actions === undefined) throw new NoSuchPodError(pod);
    return this.#actions;
  }
}

const said = (message: string | undefined): { message?: string } => (message === undefined ? {} : { message });

const voidly =
  (undo: () => Promise<void>): Undo =>
  () =>
    void undo();

function isMeant(pods: PodMatch, { metadata }: KubeObject): boolean {
  const same = (wanted: string | undefined, found: string | undefined) => wanted === undefined || wanted === found;
  return same(pods.namespace, metadata.namespace) && same(pods.name, metadata.name) && same(pods.uid, metadata.uid);
}
