import { type Client, Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "@holdfast/api/google/rpc/error_details_pb";
import { ExecutionService } from "@holdfast/api/holdfast/v1/execution_pb";
import { FileService } from "@holdfast/api/holdfast/v1/file_pb";
import { PortService } from "@holdfast/api/holdfast/v1/port_pb";
import { SessionService } from "@holdfast/api/holdfast/v1/session_pb";
import { WorkspaceService } from "@holdfast/api/holdfast/v1/workspace_pb";
import { createGrpcJsTransport } from "./grpc-js-transport.ts";

/** Where the two listeners are. */
export interface Listeners {
  readonly address: string;
  readonly webAddress: string;
}

/** One way to call: a client, a protocol, a version of HTTP, a listener. */
export interface Way {
  readonly name: string;
  readonly open: (listeners: Listeners) => Transport & Partial<Disposable>;
  /** It carries calls that stream both ways. */
  readonly bidi: boolean;
}

const base = ({ webAddress }: Listeners): string => `http://${webAddress}`;

/** Every way. */
export const ways: readonly Way[] = [
  { name: "grpc-js on --listen", bidi: true, open: ({ address }) => createGrpcJsTransport(address) },
  {
    name: "gRPC of connect-node on --listen",
    bidi: true,
    open: ({ address }) => createGrpcTransport({ baseUrl: `http://${address}` }),
  },
  { name: "grpc-js on --web-listen", bidi: true, open: ({ webAddress }) => createGrpcJsTransport(webAddress) },
  { name: "gRPC, HTTP/2", bidi: true, open: (at) => createGrpcTransport({ baseUrl: base(at) }) },
  {
    name: "gRPC-Web, HTTP/1.1",
    bidi: false,
    open: (at) => createGrpcWebTransport({ baseUrl: base(at), httpVersion: "1.1" }),
  },
  {
    name: "gRPC-Web, HTTP/2",
    bidi: true,
    open: (at) => createGrpcWebTransport({ baseUrl: base(at), httpVersion: "2" }),
  },
  {
    name: "Connect, HTTP/1.1",
    bidi: false,
    open: (at) => createConnectTransport({ baseUrl: base(at), httpVersion: "1.1" }),
  },
  {
    name: "Connect, HTTP/2",
    bidi: true,
    open: (at) => createConnectTransport({ baseUrl: base(at), httpVersion: "2" }),
  },
  {
    name: "Connect in JSON, HTTP/1.1",
    bidi: false,
    open: (at) => createConnectTransport({ baseUrl: base(at), httpVersion: "1.1", useBinaryFormat: false }),
  },
];

/** Clients of the services over one transport. */
export interface WayClients extends Disposable {
  readonly workspaces: Client<typeof WorkspaceService>;
  readonly executions: Client<typeof ExecutionService>;
  readonly files: Client<typeof FileService>;
  readonly sessions: Client<typeof SessionService>;
  readonly ports: Client<typeof PortService>;
}

export function clientsBy(way: Way, listeners: Listeners): WayClients {
  const transport = way.open(listeners);
  return {
    workspaces: createClient(WorkspaceService, transport),
    executions: createClient(ExecutionService, transport),
    files: createClient(FileService, transport),
    sessions: createClient(SessionService, transport),
    ports: createClient(PortService, transport),
    [Symbol.dispose]: () => transport[Symbol.dispose]?.(),
  };
}

/** What a call failed with, as its client sees it. */
export interface Failure {
  readonly code: string;
  readonly message: string;
  readonly reason: string | undefined;
  readonly metadata: Readonly<Record<string, string>>;
  readonly violations: readonly string[];
  readonly retrySeconds: bigint | undefined;
}

/** Throws when the call did not fail. */
export async function failureOf(call: Promise<unknown>): Promise<Failure> {
  try {
    await call;
  } catch (error) {
    const failure = ConnectError.from(error);
    const info = failure.findDetails(ErrorInfoSchema)[0];
    return {
      code: Code[failure.code],
      message: failure.rawMessage,
      reason: info?.reason,
      metadata: info?.metadata ?? {},
      violations: failure
        .findDetails(BadRequestSchema)
        .flatMap((found) => found.fieldViolations.map((one) => one.field)),
      retrySeconds: failure.findDetails(RetryInfoSchema)[0]?.retryDelay?.seconds,
    };
  }
  throw new Error("the call succeeded");
}

/** Everything that a stream delivers, and what it fails with. */
export async function collect<T>(stream: AsyncIterable<T>): Promise<{ messages: T[]; failure: Failure | undefined }> {
  const messages: T[] = [];
  const read = async (): Promise<void> => {
    for await (const message of stream) messages.push(message);
  };
  let failure: Failure | undefined;
  await read().catch(async (error: unknown) => {
    failure = await failureOf(Promise.reject(error));
  });
  return { messages, failure };
}
