import type { DescMethod, DescService } from "@bufbuild/protobuf";
import { AgentService } from "@holdfast/api/holdfast/guest/v1/agent_pb";
import { DiskService } from "@holdfast/api/holdfast/guest/v1/disk_pb";
import { ExecutionService } from "@holdfast/api/holdfast/guest/v1/execution_pb";
import { FileService } from "@holdfast/api/holdfast/guest/v1/file_pb";
import { PortService } from "@holdfast/api/holdfast/guest/v1/port_pb";
import { SessionService } from "@holdfast/api/holdfast/guest/v1/session_pb";
import { methodNameOf } from "@holdfast/guest-link";

const services: readonly DescService[] = [
  AgentService,
  DiskService,
  ExecutionService,
  FileService,
  PortService,
  SessionService,
];

/** Every method of the guest's protos. */
export const methods: readonly DescMethod[] = services.flatMap(({ methods }) => methods);
export const calls = methods.filter(({ methodKind }) => methodKind === "unary");
export const streams = methods.filter(({ methodKind }) => methodKind !== "unary");
/** Those that take bytes from their caller. */
export const uploads = methods.filter(
  ({ methodKind }) => methodKind === "client_streaming" || methodKind === "bidi_streaming",
);

export const nameOf = (method: DescMethod): string => methodNameOf(method);

/** Methods that answer at once whatever the guest is doing, so that an answer that does not come is a defect. */
const prompt = new Set([
  "Health",
  "GetExecution",
  "ListExecutions",
  "ReleaseQuiesce",
  "Stat",
  "MakeDirectory",
  "Move",
  "ResizeSession",
  "SignalSession",
  "ListSessions",
  "DetachSession",
  "OpenSession",
  "SignalExecution",
]);

export const isPrompt = ({ name }: DescMethod): boolean => prompt.has(name);
