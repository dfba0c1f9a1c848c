import type { Reason } from "./reasons.ts";

/** What a reason means for a caller, and the way out; cures that keep the disk come first. The error reference is made of it. */
export interface ReasonGuide {
  readonly means: string;
  readonly cure: string;
}

/** One entry per reason: a reason without one does not compile. */
export const reasonGuide: Readonly<Record<Reason, ReasonGuide>> = {
  WORKSPACE_SUSPENDED: {
    means:
      "The workspace is suspended or on its way there. `noticed_by` says how it was found: ADMISSION (nothing was dialled), TRANSPORT (a call failed and the object was read again), START, PREEMPTED (a suspend ended this start) or RELEASED (a suspend ended this attachment).",
    cure: "ResumeWorkspace, then call again.",
  },
  WORKSPACE_NOT_READY: {
    means:
      "It should run, but no pod can be used yet: it is starting, its pod ended by itself, drains or is not ready.",
    cure: "Call again shortly. A pod that ended by itself: ResumeWorkspace replaces it; the disk is kept.",
  },
  WORKSPACE_DELETING: {
    means: "Its object is being deleted.",
    cure: "Wait until it is gone; then OpenWorkspace makes a new one.",
  },
  AGENT_RETIRING: {
    means: "The guest agent is stopping and takes no new work. Nothing was started.",
    cure: "Call again; SuspendWorkspace and ResumeWorkspace give a new guest.",
  },
  GUEST_TOKEN_REFUSED: {
    means: "What listens at the pod's address does not hold the pod's uid as its token. Nothing was sent.",
    cure: "Call again; if it stays, suspend and resume.",
  },
  GUEST_FEATURE_MISSING: {
    means: "The guest agent cannot do this. Nothing was started.",
    cure: "Use an image with a newer agent.",
  },
  GUEST_PROTOCOL_MISMATCH: {
    means: "Service and guest agent speak no common protocol version.",
    cure: "Use an image of this release, or the release of the image.",
  },
  GUEST_RESTARTED: {
    means: "Another agent process answers than the one that the call was for. Nothing was started there.",
    cure: "Decide whether the work may be started anew; then call without the old boot id.",
  },
  WORKSPACE_MISMATCH: {
    means:
      "The standing object differs from what is asked or configured: `field`, `expected`, `actual`. It was not woken.",
    cure: "Ask for what stands, or change the configuration.",
  },
  WORKSPACE_DISK_UNUSABLE: {
    means: "The template or object has no disk that can hold a workspace: `source`, claim names.",
    cure: "Mend the template. An object that was made of it keeps its claims.",
  },
  GUEST_PRIVILEGED: {
    means: "The guest did not prove that it runs without privileges; `seen` says what was seen.",
    cure: "Mend the template's security context or image.",
  },
  INGRESS_UNVERIFIED: {
    means: "It could not be verified that only this service reaches the guest's port. Nothing was woken.",
    cure: "Apply the policy; or start the service with --ingress unverified where the port is closed by other means.",
  },
  AGENT_ADDRESS_UNRESOLVABLE: {
    means: "The guest's name does not resolve.",
    cure: "Use pod addresses, or mend the name service.",
  },
  FILE_CHANGED: {
    means: "The file is not the one that `if_unchanged` names, or it shrank while it was read.",
    cure: "Read it again.",
  },
  NOT_REGULAR_FILE: {
    means: "It is a directory, link, pipe, socket or device; it was not opened for its content.",
    cure: "Name a regular file.",
  },
  NOT_DIRECTORY: { means: "The path, or a part of it, is no directory.", cure: "Name a directory." },
  DIRECTORY_NOT_EMPTY: {
    means: "The directory has entries. Nothing was removed.",
    cure: "Ask for `recursive`, or empty it.",
  },
  HOLDER_EPOCH_UNREADABLE: {
    means:
      "The stored fencing number is no number: `stored` is its text. Nothing was sent, and it is never overwritten.",
    cure: "Mend the annotation by hand.",
  },
  HOLDER_EPOCH_REQUIRED: {
    means:
      "The workspace is fenced at `stored`, and this call, which would change something, carries no epoch. Nothing was sent.",
    cure: "Call with the holder's number (field `epoch`, or metadata `holdfast-epoch`), or take the workspace over (`take_over` on an Open or Resume).",
  },
  FLUSH_UNCONFIRMED: {
    means: "The flush that was asked for was not confirmed. The pod was not stopped.",
    cure: "Try again, or suspend with flush disabled.",
  },
  SUSPEND_OVERTAKEN: {
    means: "It was suspended, and somebody woke it before its pod was seen gone. It runs.",
    cure: "Suspend again if it should not.",
  },
  WORKSPACE_REPLACED: {
    means: "Another object, or another disk, stands under the name: `expected`, `actual`. Nothing was changed.",
    cure: "Find out who replaced it. CloseWorkspace and open it to use the new one.",
  },
  SUSPEND_UNCONFIRMED: {
    means:
      "It was asked to stop and has not been seen stopped in time: `pod`, `grace_period_seconds`, `budget_ms`. The suspend stands; the disk is kept.",
    cure: "Suspend again: it sends and waits again.",
  },
  DELETE_UNCONFIRMED: {
    means: "It was asked to be deleted and has not been seen gone in time.",
    cure: "Destroy again: it asks and waits again.",
  },
  START_TIMEOUT: {
    means: "No usable pod in time; the message says which problem it was and names the pod.",
    cure: "Mend what it names; open or resume again.",
  },
  CANCELLATION_UNCONFIRMED: {
    means:
      "Processes of the command survived its end: `survivors`. Or it is still being started (`cause` start-held), and is ended as soon as it runs. The pod is kept.",
    cure: "Look at them; suspend and resume end everything.",
  },
  GUEST_GONE: {
    means:
      "The guest that ran the command or the session is gone, as its pod was seen gone or ended: `execution_id` or `session_id`, `evidence`, `previous_pod`. How it ended is not known; what was not delivered by then is lost.",
    cure: "Look at what it did before running it again. The disk is kept.",
  },
  EXECUTION_DETACHED: {
    means:
      "The link to the command was lost: `execution_id`, `next_offset`. It was not ended. Where the call may have started it, what became of it is not known; where the call only followed it, the status is UNAVAILABLE: it may be made again.",
    cure: "AttachExecution from `next_offset`; or Execute with the same id and request, which joins the command that runs.",
  },
  FILE_OUTCOME_UNKNOWN: {
    means: "A change of a file was sent and not answered: the old content or the new stands whole, never a mixture.",
    cure: "StatFile tells which; then repeat if needed.",
  },
  AGENT_UNREACHABLE: {
    means: "The guest agent could not be reached. Nothing was sent.",
    cure: "Call again; GetWorkspace tells how the pod is.",
  },
  CLUSTER_UNAVAILABLE: { means: "The API server did not answer, or not in time.", cure: "Call again." },
  SERVICE_DRAINING: {
    means: "This process is stopping. Work in the guests goes on.",
    cure: "Call another replica, or the next process.",
  },
  FILE_NOT_FOUND: {
    means: "No such file, or no such parent directory.",
    cure: "Name one that is there; `make_parents` makes parents.",
  },
  WORKSPACE_NOT_FOUND: {
    means: "No such workspace, or no such template (the message says which).",
    cure: "OpenWorkspace makes one.",
  },
  EXECUTION_NOT_FOUND: { means: "The guest has no record of the id any more.", cure: "Use a new id to run it again." },
  EXECUTION_LOST: {
    means: "The command ran in an agent process that is gone.",
    cure: "Look at what it did before running it again under a new id.",
  },
  EXECUTION_EXISTS: { means: "The id names another command. Nothing was started.", cure: "Use a new id." },
  WORKSPACE_EXISTS: {
    means: "It stands already, and MUST_CREATE was asked. Nothing was changed.",
    cure: "Open it with IF_ABSENT.",
  },
  FILE_EXISTS: {
    means: "Something stands there already. Nothing was changed.",
    cure: "Ask for `replace`, or leave `if_absent` out.",
  },
  EXECUTION_CAPACITY: {
    means:
      "The guest runs as many commands as it may, keeps as many records, or as much input that programs have not read; the message names the setting. Or it has no room for another process, or the kernel does not answer the start of another program, or file systems do not tell of directories (`cause`).",
    cure: "Wait for one to end, or to read its input. With `cause` starts-held or looks-held: mend the file system that is named, or suspend and resume.",
  },
  STREAM_CAPACITY: {
    means: "As many streams are open as may be; the message names the setting.",
    cure: "End one, or call again shortly.",
  },
  WORKSPACE_CAPACITY: {
    means: "This process holds as many open workspaces as it may, all in use.",
    cure: "CloseWorkspace some, or use another replica.",
  },
  MESSAGE_TOO_LARGE: {
    means: "The message is larger than is taken: `limit_bytes`.",
    cure: "Send less at once; WriteFile takes files of any size.",
  },
  DISK_FULL: { means: "The disk has no room. The old file is whole.", cure: "Make room." },
  WALK_LIMIT: {
    means: "The walk looked at as many entries as it may. What was sent is not the whole.",
    cure: "Walk parts, or raise `max_visited`.",
  },
  WATCH_LIMIT: {
    means: "The kernel allows no more watches; the message names the limit.",
    cure: "Watch less, or raise it on the node.",
  },
  OFFSET_OUT_OF_RANGE: { means: "The offset is past the end.", cure: "Ask for an offset that exists." },
  PATH_OUTSIDE_WORKSPACE: {
    means: "The path leads out of the workspace's root. Nothing was touched.",
    cure: "Name a path below the root.",
  },
  FILE_ACCESS_DENIED: {
    means: "The guest's user may not, or the disk is read-only.",
    cure: "Change its mode by a command.",
  },
  INVALID_REQUEST: {
    means:
      "The request is wrong, or cannot be met as it is: a signal to another user's processes (`not_reached`), a directory whose file system does not answer (`cause` unanswered). Every violation is in BadRequest. Nothing was done.",
    cure: "Mend the request.",
  },
  PAGE_TOKEN_EXPIRED: { means: "The page token is too old, or not of this filter.", cure: "List from the first page." },
  FIELD_NOT_SERVED: {
    means: "The field is declared, and this release does not serve it: `field`. Nothing was done.",
    cure: "Leave it out.",
  },
  STREAM_NEEDS_HTTP2: {
    means: "The call streams both ways, which HTTP/1.1 (and so a browser) cannot carry. Nothing was done.",
    cure: "Use HTTP/2 with prior knowledge; from a browser AttachTerminal with WriteTerminal, or Execute with `stdin`.",
  },
  CLUSTER_FORBIDDEN: { means: "The service's role lacks a verb: `verb`, `resource`.", cure: "Grant it." },
  CLUSTER_WRITE_REFUSED: {
    means: "The API server refused the write; the message has its words. Nothing was changed.",
    cure: "As its words say.",
  },
  INTERNAL_ERROR: { means: "A defect of the service; its log has the rest under the request id.", cure: "Report it." },
  HOLDER_EPOCH_SUPERSEDED: {
    means:
      "A holder with a higher number has taken the workspace over: `mine`, `stored`. Nothing was sent; terminals and programs are as they were.",
    cure: "Re-read your holder record. To take the workspace back, open or resume it with `take_over`.",
  },
  HOLDER_EPOCH_NOT_TAKEN: {
    means:
      "The call carries a higher number than the stored one, and does not take over: `mine`, `stored`. Nothing was done.",
    cure: "Open or resume the workspace with this number first; then call again.",
  },
  ATTACHMENT_DISPLACED: {
    means: "Another EXCLUSIVE attachment took the terminal's place: `by`, `last_sequence`. The program goes on.",
    cure: "Attach again to take it back, or attach with mode OBSERVE.",
  },
  OUTPUT_NOT_RETAINED: {
    means: "Not given by this release. Output that is no longer kept comes as a gap that names what is missing.",
    cure: "Start with `retain_output` to keep more of it, for longer.",
  },
  QUIESCE_UNCONFIRMED: {
    means:
      "Not every program could be stopped in time, or it is not known: `pids`; or one is still being started (`cause` start-held). Nothing was patched.",
    cure: "End what is named, call again with a longer grace, or suspend without a quiesce.",
  },
  SESSION_NOT_FOUND: {
    means: "The guest knows no session of this id.",
    cure: "List the sessions; open a new one.",
  },
  SESSION_LOST: {
    means:
      "A former agent process of this pod had the session: its program ended with it, or was never started. Nothing was started in its place.",
    cure: "Open a new one.",
  },
  ATTACHMENT_NOT_FOUND: {
    means: "The attachment is over: it was let go, displaced, or its 60 s without a stream have passed.",
    cure: "Attach anew; `next_input_sequence` says where its input begins.",
  },
  SESSION_EXISTS: {
    means: "A session of this id runs. Nothing was started.",
    cure: "Attach to it, or choose another id.",
  },
  SESSION_CAPACITY: {
    means:
      "The guest runs as many sessions as it may, or keeps as much of the environments of those that wait to be opened: `limit`, `setting`. Or it has no room for another process or terminal, or the kernel does not answer the start of another program, or file systems do not tell of directories (`cause`). Nothing was started.",
    cure: "End one, or wait until those are open. With `cause` starts-held or looks-held: mend the file system that is named, or suspend and resume.",
  },
  INPUT_OUT_OF_ORDER: {
    means: "Input came too far ahead of its turn, or its gap was not filled in time: `expected`. It was not written.",
    cure: "Send from `expected` on.",
  },
  PORT_REFUSED: {
    means: "Nobody listens on this port of the guest, or it may not be reached: `port`, `cause`.",
    cure: "Start the server, or use its port.",
  },
  PORT_RESET: {
    means:
      "The program broke the connection, or the link to the guest did: `port`, `cause`. What was delivered came whole and in order; what the program took of what was sent is not known.",
    cure: "Connect again.",
  },
  SESSION_DETACHED: {
    means: "The link to the session was lost and not found again in time: `session_id`, `offset`. The program goes on.",
    cure: "Attach again from `offset`; a write or a resize is sent again, a write with its own sequence.",
  },
  SESSION_OUTCOME_UNKNOWN: {
    means:
      "The start of a program was sent and not answered: `session_id`. It runs under this id, was never started, or ended with the guest's agent or pod.",
    cure: "ListSessions tells whether it runs; Terminal with OPEN_OR_ATTACH takes it up.",
  },
};
