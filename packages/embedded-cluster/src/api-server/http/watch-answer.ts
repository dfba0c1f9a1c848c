import type { ResourceType } from "../resource-types.ts";
import type { ApiRequest } from "./api-request.ts";
import type { HandlerContext } from "./handlers.ts";
import { presenter } from "./presenting.ts";
import { watchWishOf } from "./query.ts";
import type { WatchAnswer } from "./watch-stream.ts";

/** The longest watch served; a caller renews it. */
const maxTimeoutSeconds = 86_400;

/** Opens a watch. Its stream closes the cursor. */
export function watchAnswer(
  { registry, now }: HandlerContext,
  type: ResourceType,
  namespace: string | undefined,
  request: ApiRequest,
): WatchAnswer {
  const wish = watchWishOf(request.query);
  const present = presenter(type, request, now);
  const seconds =
    wish.timeoutSeconds === undefined || wish.timeoutSeconds <= 0 ? defaultTimeoutSeconds() : wish.timeoutSeconds;
  return {
    type,
    cursor: registry.watch(type, namespace, wish.start, wish),
    timeoutMs: Math.min(seconds, maxTimeoutSeconds) * 1000,
    bookmarks: wish.bookmarks,
    marksListEnd: wish.marksListEnd,
    present,
  };
}

/** As long as the real server lets a watch run when the caller names no time: 30 to 60 minutes. */
function defaultTimeoutSeconds(): number {
  return 1800 + Math.floor(Math.random() * 1800);
}
