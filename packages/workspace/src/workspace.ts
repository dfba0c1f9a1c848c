import type { Deadline } from "@holdfast/async";
import type { WorkspaceId } from "@holdfast/contract";
import { HoldfastError } from "@holdfast/errors";
import type { WorkspaceDeps } from "./deps.ts";
import type { ExecutionEvent, ExecutionWish, GuestHealth } from "./ports/guest.ts";
import type { WorkspaceState } from "./state/workspace-state.ts";
import type { WorkspaceView } from "./view.ts";
import type { DestroyWish, FlushReport, OpenWish, ResumeWish, SuspendWish } from "./wishes.ts";

/** This service's record of one open workspace. Once its state is `gone` it is of no further use: drop it. */
export class Workspace {
  readonly id: WorkspaceId;
  readonly #deps: WorkspaceDeps;

  constructor(id: WorkspaceId, deps: WorkspaceDeps) {
    this.id = id;
    this.#deps = deps;
  }

  get state(): WorkspaceState {
    return { t: "opening" };
  }

  /** A write of ours has no known ending yet: the handle must be kept, whatever a read shows. */
  get hasUnresolvedWrite(): boolean {
    return false;
  }

  open(_wish: OpenWish, _caller: AbortSignal): Promise<WorkspaceView> {
    return Promise.reject(this.#notBuilt());
  }

  adopt(_caller: AbortSignal): Promise<void> {
    return Promise.reject(this.#notBuilt());
  }

  suspend(_wish: SuspendWish, _caller: AbortSignal): Promise<{ view: WorkspaceView; flush: FlushReport }> {
    return Promise.reject(this.#notBuilt());
  }

  resume(_wish: ResumeWish, _caller: AbortSignal): Promise<WorkspaceView> {
    return Promise.reject(this.#notBuilt());
  }

  destroy(_wish: DestroyWish, _caller: AbortSignal): Promise<{ view: WorkspaceView | undefined; flush: FlushReport }> {
    return Promise.reject(this.#notBuilt());
  }

  execute(_wish: ExecutionWish, _signal: AbortSignal): AsyncIterable<ExecutionEvent> {
    throw this.#notBuilt();
  }

  health(_within: Deadline): Promise<GuestHealth | undefined> {
    return Promise.reject(this.#notBuilt());
  }

  view(): WorkspaceView {
    throw this.#notBuilt();
  }

  close(): void {
    this.#deps.log.info({ workspaceId: this.id }, "closed");
  }

  #notBuilt(): HoldfastError {
    return new HoldfastError("INTERNAL_ERROR", { message: "not built yet" });
  }
}
