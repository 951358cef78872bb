import { ArgumentError, hidden } from '../../protocol/argument-error.ts'
import { checkObject, checkText } from '../../protocol/check.ts'

/** Checks the `model` option. Throws an ArgumentError that contains neither the key nor a password in the URL. */
export function checkModel(model: unknown): void {
  checkObject('model', model)
  checkText('model.name', model['name'])
  const { url, apiKey } = model
  if (!isBaseUrl(url)) {
    const expected = 'an http or https URL without credentials, query and fragment'
    throw new ArgumentError('model.url', expected, hidden(url))
  }
  // A header can contain no other characters.
  if (apiKey !== undefined && !(typeof apiKey === 'string' && /^[\x21-\x7E]+$/.test(apiKey))) {
    throw new ArgumentError('model.apiKey', 'a key of printable ASCII characters', hidden(apiKey))
  }
}

function isBaseUrl(value: unknown): boolean {
  if (typeof value !== 'string' || !URL.canParse(value)) return false
  const { protocol, username, password, search, hash } = new URL(value)
  return /^https?:$/.test(protocol) && [username, password, search, hash].every((part) => part === '')
}
