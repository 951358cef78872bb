import { untilAborted } from './until-aborted.ts'

/**
 * The text of a body, part by part as it arrives. Throws when the signal aborts, and when the body fails. A loop that ends early ends the
 * connection: the rest is not read.
 */
export async function* bodyText(
  body: ReadableStream<Uint8Array> | null,
  signal: AbortSignal,
): AsyncGenerator<string, void> {
  if (body === null) return
  const decoder = new TextDecoder()
  const reader = body.getReader()
  try {
    for (;;) {
      const { done, value } = await untilAborted(reader.read(), signal)
      if (done) return
      yield decoder.decode(value, { stream: true })
    }
  } finally {
    // The connection ends with its reader, whatever the server does.
    reader.cancel().catch(() => {})
  }
}
