import { statfs } from "node:fs/promises";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { DiskUseSchema, MemoryUseSchema, ResourceUseSchema } from "@holdfast/api/holdfast/guest/v1/agent_pb";
import type { Clock } from "@holdfast/async";
import { resourceUseTimeoutMs } from "@holdfast/contract";
import { diskUseOf, type FileSystemFacts } from "./disk-use.ts";
import { readMemoryUse } from "./memory-use.ts";

type Disk = MessageInitShape<typeof DiskUseSchema>;
type Memory = MessageInitShape<typeof MemoryUseSchema>;

/** How it is learned; tests put others in. */
export interface UseSources {
  fileSystem(path: string): Promise<FileSystemFacts>;
  memory(): Promise<Memory | undefined>;
}

/** The kernel's own word, to an agent in the pod of this uid. */
function kernelOf(podUid: string): UseSources {
  return { fileSystem: (path) => statfs(path, { bigint: true }), memory: () => readMemoryUse(podUid) };
}

/**
 * What is used of the workspace's disk and of the container's memory. Never waits for longer than `resourceUseTimeoutMs`; what is not
 * known by then, or not at all, is left out. A question that the kernel does not answer holds one thread of libuv's pool, and no second
 * one is asked beside it.
 */
export class ResourceUse {
  readonly #root: string;
  readonly #clock: Clock;
  readonly #sources: UseSources;
  #disk: Promise<Disk | undefined> | undefined;
  #memory: Promise<Memory | undefined> | undefined;

  constructor(
    { root, podUid }: { readonly root: string; readonly podUid: string },
    clock: Clock,
    sources = kernelOf(podUid),
  ) {
    this.#root = root;
    this.#clock = clock;
    this.#sources = sources;
  }

  /** The kernel is being asked. The process cannot exit of itself before it answers. */
  get isBusy(): boolean {
    return this.#disk !== undefined || this.#memory !== undefined;
  }

  /** As it is now. Never rejects. */
  async read(): Promise<MessageInitShape<typeof ResourceUseSchema>> {
    this.#disk ??= known(async () => diskUseOf(await this.#sources.fileSystem(this.#root))).finally(() => {
      this.#disk = undefined;
    });
    this.#memory ??= known(() => this.#sources.memory()).finally(() => {
      this.#memory = undefined;
    });
    const late = Promise.withResolvers<undefined>();
    const stopTimer = this.#clock.schedule(resourceUseTimeoutMs, () => late.resolve(undefined));
    try {
      const [disk, memory] = await Promise.all([
        Promise.race([this.#disk, late.promise]),
        Promise.race([this.#memory, late.promise]),
      ]);
      return { ...(disk && { disk }), ...(memory && { memory }) };
    } finally {
      stopTimer();
    }
  }
}

/** Undefined where it cannot be learned: that is the answer, and the reason is in the agent's log. */
async function known<T>(learn: () => Promise<T | undefined>): Promise<T | undefined> {
  try {
    return await learn();
  } catch (error) {
    console.error(`what is in use could not be learned: ${error instanceof Error ? error.message : error}`);
    return undefined;
  }
}
