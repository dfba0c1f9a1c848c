import type { FaultPlan } from "../../faults/fault-plan.ts";
import { NoSuchPodError } from "../../faults/node-faults.ts";
import { type AskedFault, FaultSyntaxError, parseFault } from "../../faults/parse-fault.ts";
import { badRequest, notThere } from "../refusals.ts";
import type { ApiRequest } from "./api-request.ts";
import { jsonReply, type Reply } from "./reply.ts";
import { parseObject } from "./request-body.ts";
import { refuseMethod } from "./route.ts";

export const faultsPath = "/holdfast/faults";

export const isFaultsPath = (path: string): boolean => path === faultsPath || path.startsWith(`${faultsPath}/`);

/**
 * The fault knobs over HTTP, outside the paths of Kubernetes: GET lists the rules, POST adds one (or does something
 * once), DELETE takes back all, or the one whose id follows. Served with the same token, where the operator allowed it.
 */
export class FaultConsole {
  readonly #plan: FaultPlan;

  constructor(plan: FaultPlan) {
    this.#plan = plan;
  }

  /** Undefined for a path that is not the console's. */
  answer(request: ApiRequest): Promise<Reply> | undefined {
    const { path } = request;
    if (!isFaultsPath(path)) return undefined;
    return this.#answer(request, path.slice(faultsPath.length + 1));
  }

  async #answer(request: ApiRequest, id: string): Promise<Reply> {
    if (id !== "") {
      if (request.method !== "DELETE") return refuseMethod();
      if (!this.#plan.remove(id)) throw notThere(`There is no fault rule ${JSON.stringify(id)}. Nothing was changed.`);
      return jsonReply(200, { removed: id });
    }
    switch (request.method) {
      case "GET":
        return jsonReply(200, { items: this.#plan.list() });
      case "POST":
        return jsonReply(201, await this.#add(this.#parse(request)));
      case "DELETE": {
        const removed = this.#plan.list().length;
        this.#plan.clear();
        return jsonReply(200, { removed });
      }
      default:
        return refuseMethod();
    }
  }

  #parse(request: ApiRequest): AskedFault {
    try {
      return parseFault(parseObject({ ...request, contentType: "" }));
    } catch (error) {
      if (error instanceof FaultSyntaxError) throw badRequest(error.message);
      throw error;
    }
  }

  async #add(asked: AskedFault): Promise<unknown> {
    const plan = this.#plan;
    switch (asked.t) {
      case "rule":
        return { id: plan.add(asked.rule).id };
      case "watches":
        return { id: plan.addWatchRule(asked.rule) };
      case "node":
        return { id: plan.idOf(plan.node.add(asked.rule)) };
      case "dropWatches":
        return { dropped: plan.dropWatches(asked.match) };
      default:
        return this.#doOnce(asked);
    }
  }

  async #doOnce(asked: Extract<AskedFault, { pod: unknown }>): Promise<unknown> {
    const { node } = this.#plan;
    try {
      if (asked.t === "evict") await node.evict(asked.pod, asked.text);
      else if (asked.t === "killContainer") await node.killContainer(asked.pod, asked.text);
      else return { id: this.#plan.idOf(await node.cut(asked.pod)) };
    } catch (error) {
      if (error instanceof NoSuchPodError) throw notThere(error.message);
      throw error;
    }
    return { done: asked.t };
  }
}
