import { checkObject } from '../../protocol/check.ts'
import { isObject } from '../../protocol/json.ts'
import type { ResponseObject } from '../../protocol/response.ts'

/** The text of a response (§1): all of its `output_text` parts, in order. */
export function responseText(response: ResponseObject): string {
  checkObject('response', response)
  let text = ''
  for (const item of listOf(response.output)) {
    if (!isObject(item)) continue
    for (const part of listOf(item['content']))
      if (isObject(part) && part['type'] === 'output_text' && typeof part['text'] === 'string')
        text += part['text']
  }
  return text
}

/** The entries of a list. The items of an output may be of any kind, with or without a content. */
function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}
