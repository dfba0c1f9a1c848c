import { addressText, type WebConfig } from "../config/service-config.ts";
import { listenWith, type TestHandlers } from "./grpc/test-listener.testing.ts";
import { WebListener } from "./web/web-listener.ts";

/** Both real listeners over one pipeline, on free ports, with the handlers that a test is about. */
export async function listenOnBoth(handlers: TestHandlers, web: Partial<WebConfig> = {}) {
  const grpc = await listenWith(handlers);
  const { services, logger } = grpc;
  const listen = { host: "127.0.0.1", port: 0 };
  const webListener = await WebListener.open({
    web: { listen, allowHosts: [], allowOrigins: [], ...web },
    services,
    logger,
  });
  return {
    ...grpc,
    webListener,
    webAddress: addressText(webListener.address),
    async [Symbol.asyncDispose]() {
      await webListener.close(AbortSignal.abort());
      await grpc[Symbol.asyncDispose]();
    },
  };
}
