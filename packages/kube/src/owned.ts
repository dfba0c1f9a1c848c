import type { Deadline } from "@holdfast/async";
import { claimNameOf, sandboxNameHashLabel, sandboxNameHashOf } from "@holdfast/contract";
import type { ClaimsReading, PodReading } from "@holdfast/workspace";
import type { Api } from "./api.ts";
import type { LogSink } from "./log-sink.ts";
import { at, member, optionalList, requireObject, requireText, textOf } from "./objects/json.ts";
import { isOwnedBy, readPodObject, usesClaimOf } from "./objects/pod.ts";
import type { Reader } from "./reader.ts";
import { claims, pods } from "./resources.ts";

/** Whose: one Sandbox, by its uid; the name only finds candidates. */
export interface Owner {
  readonly name: string;
  readonly uid: string;
}

const podPageSize = "250";

/** Reads what a Sandbox owns. */
export class Owned {
  readonly #api: Api;
  readonly #reader: Reader;
  readonly #log: LogSink;
  #saidForbidden = false;

  constructor(api: Api, reader: Reader, log: LogSink) {
    this.#api = api;
    this.#reader = reader;
    this.#log = log;
  }

  /**
   * Its pods, by owner uid, and strays: pods under its name that use its claims. That there is none is believed only when none of its name
   * is there either.
   */
  async pods(owner: Owner, within: Deadline): Promise<readonly PodReading[]> {
    const found: PodReading[] = [];
    let token: string | undefined;
    do {
      const labelSelector = `${sandboxNameHashLabel}=${sandboxNameHashOf(owner.name)}`;
      const page = this.#api.list(pods, { labelSelector, limit: podPageSize, continue: token });
      const body = await this.#reader.require(page, (sent) => requireObject(sent, "PodList"), within);
      const items = this.#reader.parse(page, body, (sent) => optionalList(member(sent, "items"), "items"));
      for (const item of items) {
        if (isOf(item, owner)) found.push(this.#reader.parse(page, item, (sent) => readPodOf(sent, owner)));
      }
      token = textOf(at(body, "metadata", "continue"));
    } while (token !== undefined);
    if (found.some(({ name }) => name === owner.name)) return found;

    // Somebody may have taken the label off: a pod that is not found must not read as a pod that is gone.
    const byName = this.#api.get(pods, owner.name);
    const parse = (sent: unknown): PodReading | undefined => (isOf(sent, owner) ? readPodOf(sent, owner) : undefined);
    const one = await this.#reader.read(byName, parse, within);
    return one === undefined ? found : [...found, one];
  }

  /** Its claims, by name. One that may not be read is left out. (L16) */
  async claims(owner: Owner, entries: readonly string[], within: Deadline): Promise<ClaimsReading> {
    const uids: Record<string, string> = {};
    const lost: string[] = [];
    for (const entry of entries) {
      const name = claimNameOf(entry, owner.name);
      const found = await this.#reader.find(this.#api.get(claims, name), within);
      if (found.t === "refused") {
        if (found.answer.status !== 403) throw found.error;
        this.#sayForbidden(found.error.message);
        continue;
      }
      const isIts = found.t === "found" && isOwnedBy(found.body, owner.uid);
      if (isIts) uids[name] = this.#reader.parse(this.#api.get(claims, name), found.body, uidOf);
      if (!isIts || at(found.body, "metadata", "deletionTimestamp") !== undefined) lost.push(name);
    }
    return { uids, lost };
  }

  /** The names of its claims that are still there. One that may not be read is not called gone: it throws. */
  async claimsLeft(owner: Owner, entries: readonly string[], within: Deadline): Promise<readonly string[]> {
    const left: string[] = [];
    for (const entry of entries) {
      const name = claimNameOf(entry, owner.name);
      const isIts = await this.#reader.read(this.#api.get(claims, name), (sent) => isOwnedBy(sent, owner.uid), within);
      if (isIts) left.push(name);
    }
    return left;
  }

  #sayForbidden(why: string): void {
    if (this.#saidForbidden) return;
    this.#saidForbidden = true;
    this.#log.warn(`a disk that was replaced cannot be noticed: ${why}`);
  }
}

function isOf(pod: unknown, { name, uid }: Owner): boolean {
  return isOwnedBy(pod, uid) || usesClaimOf(pod, name);
}

function readPodOf(pod: unknown, { uid }: Owner): PodReading {
  const reading = readPodObject(pod);
  return isOwnedBy(pod, uid) ? reading : { ...reading, isStray: true };
}

function uidOf(object: unknown): string {
  return requireText(at(object, "metadata", "uid"), "metadata.uid");
}
