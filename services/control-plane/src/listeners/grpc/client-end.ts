import * as grpc from "@grpc/grpc-js";

const ends = new WeakMap<grpc.Metadata, AbortSignal>();

/**
 * Notices the client's end of every call from its first frame on. grpc-js makes the call that a handler sees only once the request
 * has arrived; a client that has cancelled by then would never be noticed there.
 */
export const noticeClientEnd: grpc.ServerInterceptor = (_method, call) => {
  const end = new AbortController();
  const listener = new grpc.ServerListenerBuilder()
    .withOnReceiveMetadata((metadata, next) => {
      ends.set(metadata, end.signal);
      next(metadata);
    })
    .withOnCancel(() => end.abort())
    .build();
  return new grpc.ServerInterceptingCall(call, { start: (next) => next(listener) });
};

/** Aborts at the client's end of the call with this metadata. It may also come after an answer. */
export function clientEndOf(metadata: grpc.Metadata): AbortSignal {
  const end = ends.get(metadata);
  if (!end) throw new Error("noticeClientEnd is not among the server's interceptors");
  return end;
}
