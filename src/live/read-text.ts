import { untilAborted } from './until-aborted.ts'

/** Reads the text of a body until it ends. Rejects when the signal aborts, and with what `onText` throws. The rest is not read then. */
export async function readText(
  body: ReadableStream<Uint8Array> | null,
  signal: AbortSignal,
  onText: (text: string) => void,
): Promise<void> {
  if (body === null) return
  const decoder = new TextDecoder()
  const reader = body.getReader()
  try {
    for (;;) {
      const { done, value } = await untilAborted(reader.read(), signal)
      if (done) return
      onText(decoder.decode(value, { stream: true }))
    }
  } finally {
    // The connection ends with its reader, whatever the gateway does.
    reader.cancel().catch(() => {})
  }
}
