/** One authenticated request, read to its end: nothing of it depends on the socket any more. */
export interface ApiRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly accept: string;
  /** The media type of the body, without its parameters. */
  readonly contentType: string;
  readonly body: string;
  /** The body as it came, which is no text where it is protobuf. */
  readonly bytes: Buffer;
}
