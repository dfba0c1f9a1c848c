import type { FileService } from "@holdfast/api/holdfast/v1/file_pb";
import type { WorkspaceRegistry } from "../registry.ts";
import { changeLetGo, FileUpload } from "./file-upload.ts";
import { invalidRequest } from "./interceptors/request-validation.ts";
import { parseEpoch } from "./parse-fencing.ts";
import { parseMakeDirectory, parseRead, parseWalk, parseWrite } from "./parse-file.ts";
import { parseWorkspaceId } from "./parse-workspace.ts";
import { presentBatch, presentFile, presentRead, presentWatch } from "./present-file.ts";
import type { ServiceImplementation } from "./service-implementation.ts";

/** `holdfast.v1.FileService`: parse, call, present. */
export function fileService(registry: WorkspaceRegistry): ServiceImplementation<typeof FileService> {
  return {
    async *readFile(request, { signal }) {
      const id = parseWorkspaceId(request.workspaceId);
      const wish = parseRead(request);
      for await (const event of registry.stream(id, signal, ({ files }) => files.read(wish, signal))) {
        yield* presentRead(event);
      }
    },

    async writeFile(requests, context) {
      const { signal } = context;
      const upload = await FileUpload.begin(requests);
      context.endsInDrainWith(() => upload.endedByDrain());
      const id = parseWorkspaceId(upload.start.workspaceId);
      const wish = parseWrite(upload.start);
      const epoch = parseEpoch(upload.start.epoch, context);
      const file = await registry.ask(id, signal, (workspace) =>
        workspace.filesUnder(epoch).write(wish, upload.content(), signal),
      );
      return { file: presentFile(file) };
    },

    async putFile({ start, data }, context) {
      const { signal } = context;
      if (!start) throw invalidRequest([{ field: "start", description: "is required" }]);
      context.endsInDrainWith(() => changeLetGo(start.path));
      const id = parseWorkspaceId(start.workspaceId);
      const wish = { ...parseWrite(start), sizeBytes: start.size === undefined ? data.byteLength : Number(start.size) };
      const epoch = parseEpoch(start.epoch, context);
      const file = await registry.ask(id, signal, (workspace) =>
        workspace.filesUnder(epoch).write(wish, only(data), signal),
      );
      return { file: presentFile(file) };
    },

    async statFile({ workspaceId, path }, { signal }) {
      const id = parseWorkspaceId(workspaceId);
      return { file: presentFile(await registry.ask(id, signal, ({ files }) => files.stat(path, signal))) };
    },

    async *listDirectory({ workspaceId, path }, { signal }) {
      const id = parseWorkspaceId(workspaceId);
      for await (const batch of registry.stream(id, signal, ({ files }) => files.list(path, signal))) {
        yield* presentBatch(batch);
      }
    },

    async *walkFiles(request, { signal }) {
      const id = parseWorkspaceId(request.workspaceId);
      const wish = parseWalk(request);
      for await (const batch of registry.stream(id, signal, ({ files }) => files.walk(wish, signal))) {
        yield* presentBatch(batch);
      }
    },

    async makeDirectory(request, context) {
      const { signal } = context;
      context.endsInDrainWith(() => changeLetGo(request.path));
      const id = parseWorkspaceId(request.workspaceId);
      const wish = parseMakeDirectory(request);
      const epoch = parseEpoch(request.epoch, context);
      const file = await registry.ask(id, signal, (workspace) =>
        workspace.filesUnder(epoch).makeDirectory(wish, signal),
      );
      return { file: presentFile(file) };
    },

    async removeFile({ workspaceId, path, recursive, epoch: field }, context) {
      const { signal } = context;
      context.endsInDrainWith(() => changeLetGo(path));
      const id = parseWorkspaceId(workspaceId);
      const epoch = parseEpoch(field, context);
      await registry.ask(id, signal, (workspace) => workspace.filesUnder(epoch).remove({ path, recursive }, signal));
      return {};
    },

    async moveFile({ workspaceId, from, to, replace, epoch: field }, context) {
      const { signal } = context;
      context.endsInDrainWith(() => changeLetGo(from));
      const id = parseWorkspaceId(workspaceId);
      const epoch = parseEpoch(field, context);
      const wish = { from, to, replace };
      const file = await registry.ask(id, signal, (workspace) => workspace.filesUnder(epoch).move(wish, signal));
      return { file: presentFile(file) };
    },

    async *watchDirectory({ workspaceId, path, recursive }, { signal }) {
      const id = parseWorkspaceId(workspaceId);
      for await (const event of registry.stream(id, signal, ({ files }) => files.watch({ path, recursive }, signal))) {
        yield presentWatch(event);
      }
    },
  };
}

async function* only(data: Uint8Array): AsyncGenerator<Uint8Array, void> {
  if (data.byteLength > 0) yield data;
}
