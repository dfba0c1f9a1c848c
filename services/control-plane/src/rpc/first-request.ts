import { invalidRequest } from "./interceptors/request-validation.ts";

/** Takes the first of a stream's requests; the rest are still to be pulled. Throws INVALID_REQUEST where none came. */
export async function takeFirst<Request>(
  requests: AsyncIterable<Request>,
): Promise<{ readonly first: Request; readonly rest: AsyncIterable<Request> }> {
  const iterator = requests[Symbol.asyncIterator]();
  const { done, value } = await iterator.next();
  if (done) throw invalidRequest([{ field: "start", description: "must come; the client sent nothing" }]);
  return { first: value, rest: { [Symbol.asyncIterator]: () => iterator } };
}
