import type { ModelMessage, ModelServer } from './model-server.ts'
import type { Complaint } from './prompt.ts'

/** How often a model is asked for one answer: a reply that cannot be used is shown to it once. */
const ATTEMPTS = 2

/**
 * Asks a model until `read` can use its reply, twice at most. Rejects with the error of the server, with the last one of
 * `read`, or with the signal's reason.
 */
export async function ask<Answer>(
  server: Pick<ModelServer, 'complete'>,
  promptWith: (complaint: Complaint | undefined) => readonly ModelMessage[],
  read: (reply: string) => Promise<Answer>,
  signal: AbortSignal,
): Promise<Answer> {
  let complaint: Complaint | undefined
  for (let attempt = 1; ; attempt += 1) {
    // oxlint-disable-next-line no-await-in-loop -- the second attempt depends on the first
    const reply = await server.complete(promptWith(complaint), signal)
    try {
      // oxlint-disable-next-line no-await-in-loop -- as above
      return await read(reply)
    } catch (error) {
      signal.throwIfAborted()
      if (attempt === ATTEMPTS) throw error
      complaint = { reply, reason: messageOf(error) }
    }
  }
}

/** Why a model gave no answer. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
