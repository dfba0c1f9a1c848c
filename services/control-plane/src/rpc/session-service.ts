import type { SessionService, TerminalRequest } from "@holdfast/api/holdfast/v1/session_pb";
import { attachmentIdOf } from "@holdfast/contract";
import { type OpenedSession, Terminal, type TerminalInput } from "@holdfast/workspace";
import type { WorkspaceRegistry } from "../registry.ts";
import { takeFirst } from "./first-request.ts";
import { invalidRequest } from "./interceptors/request-validation.ts";
import { parseEpoch } from "./parse-fencing.ts";
import {
  parseAttach,
  parseOpenTerminal,
  parseReadSession,
  parseSequence,
  parseSessionId,
  parseSize,
  parseStartDetached,
  parseTerminalInput,
  parseTerminalStart,
} from "./parse-session.ts";
import { parseWorkspaceId } from "./parse-workspace.ts";
import { presentAttach, presentSession, presentTerminal } from "./present-session.ts";
import type { ServiceImplementation } from "./service-implementation.ts";
import { killLetGo, SessionProgress, startLetGo } from "./session-progress.ts";

/** `holdfast.v1.SessionService`: parse, call, present. */
export function sessionService(registry: WorkspaceRegistry): ServiceImplementation<typeof SessionService> {
  return {
    async openTerminal(request, context) {
      const { signal } = context;
      const id = parseWorkspaceId(request.workspaceId);
      const wish = parseOpenTerminal(request);
      const epoch = parseEpoch(request.epoch, context);
      context.endsInDrainWith(() => startLetGo(wish.sessionId));
      const opened = await registry.ask(id, signal, (workspace) =>
        workspace.sessionsUnder(epoch, "OpenTerminal").open(wish, signal),
      );
      return presentOpened(opened);
    },

    async *attachTerminal(request, context) {
      const { signal } = context;
      const id = parseWorkspaceId(request.workspaceId);
      const wish = parseAttach(request);
      const epoch = parseEpoch(request.epoch, context);
      const progress = new SessionProgress(wish);
      context.endsInDrainWith(() => progress.letGoByDrain());
      const events = registry.stream(id, signal, (workspace) =>
        workspace.sessionsUnder(epoch, "AttachTerminal").attach(wish, "kept", signal),
      );
      for await (const event of events) {
        for (const response of presentAttach(event)) {
          yield response;
          progress.delivered(response);
        }
      }
    },

    async writeTerminal(request, context) {
      const { signal } = context;
      const id = parseWorkspaceId(request.workspaceId);
      const epoch = parseEpoch(request.epoch, context);
      const wish = {
        sessionId: parseSessionId(request.sessionId),
        attachmentId: attachmentIdOf(request.attachmentId),
        sequence: parseSequence(request.sequence),
        data: request.data,
      };
      const { nextSequence } = await registry.ask(id, signal, (workspace) =>
        workspace.sessionsUnder(epoch, "WriteTerminal").write(wish, signal),
      );
      return { nextInputSequence: BigInt(nextSequence) };
    },

    async resizeTerminal(request, context) {
      const { signal } = context;
      const id = parseWorkspaceId(request.workspaceId);
      const epoch = parseEpoch(request.epoch, context);
      const size = parseSize(request.size);
      if (size === undefined) throw invalidRequest([{ field: "size", description: "is required" }]);
      const wish = {
        sessionId: parseSessionId(request.sessionId),
        size,
        attachmentId: request.attachmentId === "" ? undefined : attachmentIdOf(request.attachmentId),
      };
      await registry.ask(id, signal, (workspace) =>
        workspace.sessionsUnder(epoch, "ResizeTerminal").resize(wish, signal),
      );
      return {};
    },

    async *terminal(requests, context) {
      const { signal } = context;
      const { first, rest } = await takeFirst(requests);
      if (first.request.case !== "start") throw invalidRequest([{ field: "start", description: "must come first" }]);
      const start = first.request.value;
      const id = parseWorkspaceId(start.workspaceId);
      const wish = parseTerminalStart(start);
      const epoch = parseEpoch(start.epoch, context);
      const call = new Terminal(wish, inputsOf(rest));
      const opening = { startedBound: () => call.opened && wish.program.clientBound };
      const progress = new SessionProgress(wish.attach, wish.verb === "attach" ? undefined : opening);
      context.endsInDrainWith(() => progress.letGoByDrain());
      const events = registry.stream(id, signal, (workspace) =>
        workspace.sessionsUnder(epoch, "Terminal").terminal(call, signal),
      );
      for await (const event of events) {
        for (const response of presentTerminal(event)) {
          yield response;
          progress.delivered(response);
        }
      }
    },

    async startDetached(request, context) {
      const { signal } = context;
      const id = parseWorkspaceId(request.workspaceId);
      const wish = parseStartDetached(request);
      const epoch = parseEpoch(request.epoch, context);
      context.endsInDrainWith(() => startLetGo(wish.sessionId));
      const opened = await registry.ask(id, signal, (workspace) =>
        workspace.sessionsUnder(epoch, "StartDetached").open(wish, signal),
      );
      return presentOpened(opened);
    },

    async readSession(request, { signal }) {
      const id = parseWorkspaceId(request.workspaceId);
      const wish = parseReadSession(request);
      const { data, offset, nextOffset, session } = await registry.ask(id, signal, (workspace) =>
        workspace.sessionsUnder(undefined, "ReadSession").read(wish, signal),
      );
      return {
        data,
        offset: BigInt(offset),
        nextOffset: BigInt(nextOffset),
        droppedBytes: BigInt(session.droppedBytes),
        session: presentSession(session),
      };
    },

    async listSessions({ workspaceId }, { signal }) {
      const id = parseWorkspaceId(workspaceId);
      const { sessions, bootId } = await registry.ask(id, signal, (workspace) =>
        workspace.sessionsUnder(undefined, "ListSessions").list(signal),
      );
      return { sessions: sessions.map(presentSession), bootId };
    },

    async killSession(request, context) {
      const { signal } = context;
      const id = parseWorkspaceId(request.workspaceId);
      const epoch = parseEpoch(request.epoch, context);
      const wish = { sessionId: parseSessionId(request.sessionId), signal: request.signal };
      context.endsInDrainWith(() => killLetGo(wish.sessionId));
      const session = await registry.ask(id, signal, (workspace) =>
        workspace.sessionsUnder(epoch, "KillSession").kill(wish, signal),
      );
      return { session: presentSession(session) };
    },
  };
}

function presentOpened(opened: OpenedSession) {
  return { session: presentSession(opened), bootId: opened.bootId ?? "" };
}

async function* inputsOf(requests: AsyncIterable<TerminalRequest>): AsyncGenerator<TerminalInput> {
  for await (const request of requests) yield parseTerminalInput(request);
}
