/**
 * How many streams the client of one HTTP/2 connection may reset in one go, and per second after that, before the connection is ended
 * with every call on it. Node's own (1,000 and 33) are met by a well-meant client that gives up many calls at once.
 */
export const cancelLimits = { streamResetBurst: 100_000, streamResetRate: 10_000 };
