import * as http2 from "node:http2";

/** A proxy that gives each gRPC call to the next of its targets, whatever connection of its client the call came on. */
export async function roundRobin(
  targets: readonly string[],
): Promise<AsyncDisposable & { readonly target: string; readonly served: readonly number[] }> {
  const served = targets.map(() => 0);
  const upstreams = targets.map((target) => http2.connect(`http://${target}`));
  // Whoever calls hears of it by its own stream.
  for (const upstream of upstreams) upstream.on("error", () => undefined);
  const sessions = new Set<http2.ServerHttp2Session>();
  const server = http2.createServer();
  server.on("session", (session) => {
    sessions.add(session);
    session.on("close", () => sessions.delete(session));
  });
  let next = 0;
  server.on("stream", (near, headers) => {
    const at = next % upstreams.length;
    next += 1;
    served[at] = (served[at] ?? 0) + 1;
    const upstream = upstreams[at];
    if (!upstream) throw new Error("no upstream");
    carry(near, headers, upstream);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return {
    target: `127.0.0.1:${address.port}`,
    served,
    async [Symbol.asyncDispose]() {
      for (const session of [...sessions, ...upstreams]) session.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function carry(
  near: http2.ServerHttp2Stream,
  headers: http2.IncomingHttpHeaders,
  upstream: http2.ClientHttp2Session,
): void {
  const far = upstream.request({ ...headers }, { endStream: false });
  let trailers: http2.IncomingHttpHeaders | undefined;
  far.on("response", (answer, flags) => {
    if (near.destroyed) return;
    if ((flags & http2.constants.NGHTTP2_FLAG_END_STREAM) !== 0) {
      near.respond(answer, { endStream: true });
      return;
    }
    near.respond(answer, { waitForTrailers: true });
    far.pipe(near);
  });
  far.on("trailers", (sent) => {
    trailers = sent;
  });
  near.on("wantTrailers", () => near.sendTrailers(trailers ?? {}));
  near.pipe(far);
  // A cut on one side is a cut on the other.
  near.on("aborted", () => far.close(http2.constants.NGHTTP2_CANCEL));
  far.on("error", () => near.close(http2.constants.NGHTTP2_INTERNAL_ERROR));
  near.on("error", () => far.close(http2.constants.NGHTTP2_CANCEL));
  far.on("close", () => {
    if (far.rstCode !== 0 && !near.closed) near.close(far.rstCode);
  });
}
