import { parseJson } from '../../protocol/json.ts'
import type { AnswerSchema, StandardResult } from '../../protocol/standard-schema.ts'
import { AnswerSchemaError } from './answer-errors.ts'
import { validatorOf } from './answer-schema.ts'

/** Parses the text of an answer and validates it. Rejects with an {@link AnswerSchemaError} if it does not match. */
export async function checkedContent<Content>(schema: AnswerSchema<Content>, text: string): Promise<Content> {
  const value = parseJson(text)
  if (value === undefined) throw new AnswerSchemaError([{ message: 'it is not JSON' }], text)
  let result: StandardResult<Content>
  try {
    result = await validatorOf(schema)['~standard'].validate(value)
  } catch (cause) {
    throw new AnswerSchemaError([{ message: 'the schema itself failed' }], text, { cause })
  }
  if (result.issues !== undefined) throw new AnswerSchemaError(result.issues, text)
  return result.value
}
