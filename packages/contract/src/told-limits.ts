import * as guest from "./guest-limits.ts";
import { workspaceIdMaxLength } from "./ids.ts";
import * as limits from "./limits.ts";
import * as timings from "./timings.ts";

/**
 * The limits and defaults that a caller can meet, by the names under which GetServerInfo tells them: those of the constants, in snake
 * case. Whatever else ends in a limit's name is internal, and listed as such in told-limits.test.ts.
 */
export const toldLimits: Readonly<Record<string, number>> = {
  workspace_id_max_length: workspaceIdMaxLength,
  epoch_max: limits.epochMax,
  request_max_bytes: limits.requestMaxBytes,
  page_size_default: limits.pageSizeDefault,
  page_size_max: limits.pageSizeMax,
  handles_max: limits.handlesMax,
  calls_max: limits.callsMax,
  calls_per_connection_max: limits.callsPerConnectionMax,
  violations_named_max: limits.violationsNamedMax,
  error_message_max_length: limits.errorMessageMaxLength,
  error_value_max_length: limits.errorValueMaxLength,

  ready_timeout_default_ms: timings.readyTimeoutDefaultMs,
  stop_timeout_default_ms: timings.stopTimeoutDefaultMs,
  start_stop_timeout_max_ms: timings.startStopTimeoutMaxMs,
  flush_timeout_default_ms: timings.flushTimeoutDefaultMs,
  flush_timeout_max_ms: guest.flushTimeoutMaxMs,
  quiesce_grace_default_ms: guest.quiesceGraceDefaultMs,
  quiesce_grace_max_ms: guest.quiesceGraceMaxMs,
  quiesce_hold_max_ms: guest.quiesceHoldMaxMs,
  quiesced_named_max: guest.quiescedNamedMax,

  output_chunk_max_bytes: limits.outputChunkMaxBytes,
  stdin_max_bytes: limits.stdinMaxBytes,
  stdin_write_max_bytes: guest.stdinWriteMaxBytes,
  stdin_waiting_max_bytes: limits.stdinWaitingMaxBytes,
  execution_list_args_max_bytes: guest.executionListArgsMaxBytes,
  run_command_output_max_bytes: limits.runCommandOutputMaxBytes,
  run_command_timeout_default_ms: timings.runCommandTimeoutDefaultMs,
  execution_records_max: guest.executionRecordsMax,
  execution_requests_max_bytes: guest.executionRequestsMaxBytes,
  execution_inputs_max_bytes: guest.executionInputsMaxBytes,
  execution_tombstones_max: guest.executionTombstonesMax,
  execution_log_max_bytes: guest.executionLogMaxBytes,
  retained_execution_log_max_bytes: guest.retainedExecutionLogMaxBytes,
  execution_logs_max_bytes: guest.executionLogsMaxBytes,
  execution_log_pieces_max: guest.executionLogPiecesMax,
  cancel_grace_default_ms: guest.cancelGraceDefaultMs,
  cancel_grace_max_ms: guest.cancelGraceMaxMs,
  drain_default_ms: guest.drainDefaultMs,
  drain_max_ms: guest.drainMaxMs,
  leftovers_named_max: guest.leftoversNamedMax,

  sessions_max: guest.sessionsMax,
  session_args_max_bytes: guest.sessionArgsMaxBytes,
  session_environments_max_bytes: guest.sessionEnvironmentsMaxBytes,
  session_ring_max_bytes: guest.sessionRingMaxBytes,
  session_input_max_bytes: guest.sessionInputMaxBytes,
  session_read_max_bytes: guest.sessionReadMaxBytes,
  session_read_wait_max_ms: guest.sessionReadWaitMaxMs,
  attachments_remembered_max: guest.attachmentsRememberedMax,
  input_ahead_max: guest.inputAheadMax,
  input_window_max_bytes: guest.inputWindowMaxBytes,
  tunnels_max: guest.tunnelsMax,

  put_file_max_bytes: limits.putFileMaxBytes,
  file_chunk_max_bytes: limits.fileChunkMaxBytes,
  file_batch_max: limits.fileBatchMax,
  path_max_bytes: limits.pathMaxBytes,
  walk_visited_max: limits.walkVisitedMax,
  file_streams_max: guest.fileStreamsMax,
  symlinks_max: guest.symlinksMax,
  tree_depth_max: guest.treeDepthMax,
  watched_directories_max: guest.watchedDirectoriesMax,

  workspace_event_queue_max: limits.workspaceEventQueueMax,
  workspace_watch_events_max: limits.workspaceWatchEventsMax,
  watch_queue_max: limits.watchQueueMax,
  watched_workspaces_max: limits.watchedWorkspacesMax,
};
