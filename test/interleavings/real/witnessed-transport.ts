import type { ApiAnswer, ApiRequest, ApiStream, ApiTransport } from "@holdfast/kube";
import { placeOf, type SentRequest, type TransportWitness } from "../world/api-transport.ts";

/** The product's own transport over HTTP, with a witness of what is sent and answered. */
export class WitnessedTransport implements ApiTransport {
  readonly #inner: ApiTransport;
  readonly #witness: Pick<TransportWitness, "sent" | "answered">;

  constructor(inner: ApiTransport, witness: Pick<TransportWitness, "sent" | "answered">) {
    this.#inner = inner;
    this.#witness = witness;
  }

  async send(request: ApiRequest, signal: AbortSignal): Promise<ApiAnswer> {
    const { resource, name } = placeOf(request.path);
    const sent: SentRequest = { method: request.method, plural: resource.plural, name, body: request.body?.json };
    this.#witness.sent(sent);
    try {
      const answer = await this.#inner.send(request, signal);
      if (answer.status < 400) this.#witness.answered(sent, { t: "ok", body: answer.body });
      else this.#witness.answered(sent, { t: "refused", why: `${answer.status}` });
      return answer;
    } catch (error) {
      this.#witness.answered(sent, { t: "lost", why: String(error) });
      throw error;
    }
  }

  stream(request: ApiRequest, signal: AbortSignal, keepAliveMs?: number): Promise<ApiStream> {
    return this.#inner.stream(request, signal, keepAliveMs);
  }

  close(): void {
    this.#inner.close();
  }
}
