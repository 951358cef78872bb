import { isObject } from '../../protocol/json.ts'
import type { FieldBasis, TaskOutput } from '../../protocol/output.ts'
import type { Span } from '../corpus/blocks.ts'
import { isUnknown } from '../processor/answer/unknown.ts'

/** The form of an answer. `object` is any JSON object. */
export type AnswerForm =
  | { readonly type: 'text' }
  | { readonly type: 'object' }
  | { readonly type: 'schema'; readonly schema: Readonly<Record<string, unknown>> }

/** An answer as text. */
export interface AnswerContent {
  readonly text: string
  /** The range of each top-level field of a JSON answer in the text, in UTF-16 code units. */
  readonly fields: ReadonlyMap<string, Span>
  readonly basis: readonly FieldBasis[]
  /** Whether anything was found. */
  readonly isFound: boolean
}

/** The answer in prose to a question that the documents do not answer. */
const NOTHING_FOUND = 'No answer was found.'

/** Converts an output to text. Throws for an output that has no content of its type, since a processor may be the user's own. */
export function contentOf(output: TaskOutput, form: AnswerForm): AnswerContent {
  const basis = Array.isArray(output.basis) ? output.basis : []
  if (output.type === 'json' && isObject(output.content)) {
    return { ...writeObject(output.content), basis, isFound: true }
  }
  if (output.type !== 'text' || typeof output.content !== 'string') {
    throw new TypeError('the processor returned no content')
  }
  const { content } = output
  if (form.type === 'schema') throw new TypeError('the processor returned text where a schema was given')
  const isFound = content !== '' && !isUnknown(content)
  if (form.type !== 'text') return { ...writeObject({ answer: content }), basis, isFound }
  return { text: content || NOTHING_FOUND, fields: new Map(), basis, isFound }
}

/** Writes the object like `JSON.stringify`, and records the position of each field's value. */
function writeObject(content: Readonly<Record<string, unknown>>): Pick<AnswerContent, 'text' | 'fields'> {
  const fields = new Map<string, Span>()
  let text = '{'
  for (const [name, value] of Object.entries(content)) {
    const json: string | undefined = JSON.stringify(value)
    if (json === undefined) continue
    text += `${text === '{' ? '' : ','}${JSON.stringify(name)}:`
    fields.set(name, { start: text.length, end: text.length + json.length })
    text += json
  }
  return { text: `${text}}`, fields }
}

/** The words of a text with the space before them. Together they are exactly the text; a long word is several pieces. */
export function* piecesOf(text: string): Generator<string> {
  for (const [piece] of text.matchAll(/\s{0,16}\S{1,256}|\s{1,256}/gu)) yield piece
}
