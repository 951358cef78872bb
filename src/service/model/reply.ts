import { z } from 'zod'
import { isObject } from '../../protocol/json.ts'
import { ModelError } from './model-error.ts'

/** Maximum number of quotes that are read. */
const MAX_QUOTES = 200

const replySchema = z.object({
  answer: z.unknown(),
  quotes: z
    .array(
      z.object({
        field: z.string().max(1_000).optional(),
        passage: z.int(),
        quote: z.string().max(20_000),
      }),
    )
    .max(MAX_QUOTES)
    .nullish(),
})

/** The reply of a model. */
export interface Reply {
  /** A text or an object; null if the passages do not say. */
  readonly answer: string | Readonly<Record<string, unknown>> | null
  readonly quotes: readonly {
    readonly field?: string | undefined
    readonly passage: number
    readonly quote: string
  }[]
}

/** Reads a model's reply. Throws a {@link ModelError} that describes its problem in words for the model. */
export function readReply(text: string): Reply {
  const read = replySchema.safeParse(jsonIn(text))
  if (!read.success) {
    const [issue] = read.error.issues
    throw new ModelError(
      `the reply is not of the requested form: ${issue?.path.join('.') || 'it'}: ${issue?.message}`,
    )
  }
  const { answer = null, quotes } = read.data
  if (answer !== null && typeof answer !== 'string' && !isObject(answer)) {
    throw new ModelError('"answer" must be a text, an object or null')
  }
  return { answer, quotes: quotes ?? [] }
}

/** The JSON object of a reply, which may have other text or a code fence around it. */
function jsonIn(text: string): unknown {
  const [start, end] = [text.indexOf('{'), text.lastIndexOf('}')]
  try {
    return JSON.parse(text.slice(start, end + 1))
  } catch (cause) {
    throw new ModelError('the reply is no JSON object', { cause })
  }
}
