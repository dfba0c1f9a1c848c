import {
  FileService,
  ListResponseSchema,
  RemoveResponseSchema,
  WalkResponseSchema,
} from "@holdfast/api/holdfast/guest/v1/file_pb";
import type { AgentStream, Router } from "@holdfast/guest-link";
import type { Fence } from "../fence/fence.ts";
import { BatchSender } from "./batch-sender.ts";
import type { Effect } from "./effect.ts";
import { fileErrorOf } from "./file-errors.ts";
import type { FileInfoInit } from "./file-info.ts";
import { FileStreams } from "./file-streams.ts";
import type { Libc } from "./libc.ts";
import { listDirectory } from "./list-directory.ts";
import { makeDirectory } from "./make-directory.ts";
import { moveFile } from "./move-file.ts";
import { readFile } from "./read-file.ts";
import { removeFile } from "./remove-file.ts";
import type { Staging } from "./staging.ts";
import { statFile } from "./stat-file.ts";
import { walkTree } from "./walk-tree.ts";
import { watchDirectory } from "./watch-directory.ts";
import type { WorkspaceTree } from "./workspace-tree.ts";
import { writeFile } from "./write-file.ts";

/** What files are served from. */
export interface FileNeeds {
  readonly tree: WorkspaceTree;
  readonly staging: Staging;
  readonly libc: Libc | undefined;
  readonly fence: Fence;
}

/** Serves files. What changes them is judged again at each change (G5a). */
export function routeFiles(router: Router, { tree, staging, libc, fence }: FileNeeds): void {
  const { stat, makeDirectory: make, move, remove, read, write, list, walk, watch } = FileService.method;
  const streams = new FileStreams();
  const effectOf =
    (epoch: bigint | undefined): Effect =>
    (change) =>
      fence.effect(epoch, change);
  router
    .unary(stat, async ({ path }) => ({ file: await answered(path, () => statFile(tree, path)) }))
    .unary(make, async (request, { epoch }) => ({
      file: await answered(request.path, () => makeDirectory(tree, request, effectOf(epoch))),
    }))
    .unary(move, async (request, { epoch }) => ({
      file: await answered(request.to, () => moveFile(tree, libc, request, effectOf(epoch))),
    }))
    .stream(remove, (request, stream) =>
      streams.run(async () => {
        const { epoch, signal } = stream.context;
        await answered(request.path, () => removeFile(tree, request, effectOf(epoch), signal));
        stream.sendMessage(RemoveResponseSchema, {});
      }),
    )
    .stream(read, (request, stream) => streams.run(() => answered(request.path, () => readFile(tree, request, stream))))
    .upload(write, (request, upload, { epoch, signal }) =>
      streams.run(async () => {
        const forget = fence.onRaise(epoch, (why) => upload.end(why));
        try {
          const effect = effectOf(epoch);
          return {
            file: await answered(request.path, () => writeFile({ tree, staging, effect }, request, upload, signal)),
          };
        } finally {
          forget();
        }
      }),
    )
    .stream(list, ({ path }, stream) =>
      streams.run(() =>
        sendLists(stream, listDirectory(tree, path, stream.context.signal), (files) =>
          stream.sendMessage(ListResponseSchema, { files }),
        ),
      ),
    )
    .stream(walk, (request, stream) =>
      streams.run(() =>
        sendLists(stream, walkTree(tree, request, stream.context.signal), (files) =>
          stream.sendMessage(WalkResponseSchema, { files }),
        ),
      ),
    )
    .stream(watch, (request, stream) => streams.run(() => watchDirectory(tree, libc, request, stream)));
}

/** Sends what is known at once: the next list may take a while. */
async function sendLists(
  stream: AgentStream,
  lists: AsyncIterable<readonly FileInfoInit[]>,
  send: (files: FileInfoInit[]) => boolean,
): Promise<void> {
  const sender = new BatchSender(stream, send);
  for await (const files of lists) {
    await sender.add(files);
    await sender.flush();
  }
}

/** Whatever the kernel refuses is an answer, not a defect of the agent. */
async function answered<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw fileErrorOf(error, path);
  }
}
