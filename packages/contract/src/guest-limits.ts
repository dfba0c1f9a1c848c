/** Limits and timings of what runs in a guest. (services/guest-agent/README.md) */

/** Executions that a guest knows at once; ended ones make room first. */
export const executionRecordsMax = 1_024;
/** Programs' names and arguments that all records keep together, and environments while their programs are being started. */
export const executionRequestsMaxBytes = 64 * 1024 * 1024;
/** Input given whole with starts that programs have not read yet, in all. */
export const executionInputsMaxBytes = 64 * 1024 * 1024;
/** How long the record of an ended execution is kept. */
export const executionKeptMs = 60_000;
/** How long it is kept when its output is retained. */
export const retainedExecutionKeptMs = 10 * 60_000;
/** How long the kernel may leave one start unanswered before all others are refused until it answers. */
export const startsHeldAfterMs = 30_000;
/** How long a file system may take to tell of a path of the user's, before what needs it is refused. */
export const userPathAnswerMs = 5_000;
/** Ids of executions that are remembered after their record. */
export const executionTombstonesMax = 65_536;
/** How long such an id is remembered. */
export const executionTombstoneKeptMs = 24 * 60 * 60_000;

/** Output that the log of an execution keeps. */
export const executionLogMaxBytes = 256 * 1024;
/** Output that it keeps when output is retained. */
export const retainedExecutionLogMaxBytes = 1024 * 1024;
/** Output that all logs of a guest keep together. */
export const executionLogsMaxBytes = 256 * 1024 * 1024;
/** Stretches of one stream that a log keeps; a program that switches streams more often loses older output. */
export const executionLogPiecesMax = 8_192;

/** The most input in one write to a command's standard input. */
export const stdinWriteMaxBytes = 64 * 1024;
/** Arguments of one command that a list of commands names, in bytes. */
export const executionListArgsMaxBytes = 512;

/** Between SIGTERM and SIGKILL of a cancelled or timed-out command. */
export const cancelGraceDefaultMs = 250;
/** The longest such time that a caller may ask for. */
export const cancelGraceMaxMs = 60_000;
/** How long after SIGKILL everything must be gone. */
export const cancelConfirmMs = 5_000;
/** How long outputs may stay silent after the leader exited before the result is sent. */
export const drainDefaultMs = 500;
/** The longest such time that a caller may ask for. */
export const drainMaxMs = 60_000;
/** How long a command that is bound to its client waits for one after the link was lost. */
export const orphanAfterMs = 60_000;
/** Processes that a result names at most. */
export const leftoversNamedMax = 64;

/** Streams of files (all but Stat, MakeDirectory and Move) that a guest carries at once. */
export const fileStreamsMax = 64;
/** Symbolic links that one path may lead through. */
export const symlinksMax = 40;
/** How deep below its top a walk, a recursive removal or watch goes. */
export const treeDepthMax = 512;
/** Directories that one recursive watch may watch. */
export const watchedDirectoriesMax = 65_536;

/** How long the agent may take from SIGTERM to exit. */
export const agentStopWatchdogMs = 15_000;
/** How much of that its quiesce may take; the rest is for the flush. */
export const agentStopQuiesceMs = 6_000;
/** How long the service asks a guest again to confirm a cancellation. */
export const cancelAskAgainMs = 8_000;

/** Between SIGTERM and SIGKILL of a quiesce. */
export const quiesceGraceDefaultMs = 1_000;
/** The longest such time that a caller may ask for. */
export const quiesceGraceMaxMs = 4_999;
/** How long the guest may scan and kill. */
export const quiesceScanMs = 20_000;
/** The longest lease of a hold. */
export const quiesceHoldMaxMs = 10 * 60_000;
/** Processes that a quiesce's report names at most. */
export const quiescedNamedMax = 64;
/** The longest time that a flush may be given. */
export const flushTimeoutMaxMs = 10 * 60_000;
/** How long a health answer waits for what is used of disk and memory. */
export const resourceUseTimeoutMs = 500;

/** Sessions that a guest knows at once; ended ones make room first, running ones never. */
export const sessionsMax = 64;
/** Arguments of one session's program: those of all sessions have to fit one list. */
export const sessionArgsMaxBytes = 48 * 1024;
/** Environments of sessions whose programs are being started, in all. */
export const sessionEnvironmentsMaxBytes = 64 * 1024 * 1024;
/** Output that a session keeps. */
export const sessionRingMaxBytes = 1024 * 1024;
/** How long an ended session is kept. */
export const sessionKeptMs = 10 * 60_000;
/** How long an attachment outlives its stream; also how long a program that is bound to its client waits for one. */
export const attachmentKeptMs = 60_000;
/** Attachments without a stream that a session remembers, and displaced ones. */
export const attachmentsRememberedMax = 256;
/** The most input in one write to a session. */
export const sessionInputMaxBytes = 64 * 1024;
/** Writes that may come ahead of their turn, per attachment. */
export const inputAheadMax = 64;
/** Bytes of input of one attachment that may be under way. */
export const inputWindowMaxBytes = 256 * 1024;
/** How long a write that came ahead waits for those before it. */
export const inputAheadWaitMs = 2_000;
/** The most bytes that one read of a session answers. */
export const sessionReadMaxBytes = 1024 * 1024;
/** What it answers when the caller does not say. */
export const sessionReadDefaultBytes = 256 * 1024;
/** The longest time that a read may wait for output. */
export const sessionReadWaitMaxMs = 60_000;
/** After how long at most the kill of a session answers. */
export const sessionKillAnswerMs = 5_000;

/** Connections to ports of the guest, at once. */
export const tunnelsMax = 128;
/** How long connecting to a port may take. */
export const tunnelConnectTimeoutMs = 10_000;
