import { hasEnded } from "../binding/bindable.ts";
import type { ClusterNews } from "../ports/cluster.ts";
import { type Handle, heldPodOf } from "../state/handle.ts";
import { isFollowed } from "./lost-pods.ts";

/**
 * Whether what the watch said contradicts what this handle holds, so that somebody should look. It may be late, and decides nothing; what
 * is about a pod that is not held any more is nobody's business (L37).
 */
export function concerns(ws: Handle, news: ClusterNews): boolean {
  const { state } = ws;
  if (state.t === "gone" || state.t === "opening" || state.t === "resuming") return false;
  switch (news.t) {
    case "missed":
    case "changed":
      return true;
    case "sandbox":
      if (news.happened === "gone" || news.uid !== ws.known?.sandboxUid) return true;
      if (state.t === "deleting") return false;
      if (news.deleting || state.t === "suspending") return true;
      return state.t !== "suspended" && news.mode === "Suspended";
    case "pod":
      if ((news.gone || hasEnded(news.pod)) && isFollowed(ws, news.pod.uid)) return true;
      if (state.t === "suspending") return news.gone || hasEnded(news.pod);
      if (news.pod.uid !== heldPodOf(state) || state.t === "unbound") return false;
      return news.gone || news.pod.deleting || hasEnded(news.pod) || isRestarted(ws, news.pod.restartCount);
  }
}

function isRestarted({ state }: Handle, restartCount: number): boolean {
  return state.t === "active" && restartCount > state.bound.pod.restartCount;
}
