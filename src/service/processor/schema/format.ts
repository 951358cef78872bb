import { Ajv, type ValidateFunction } from 'ajv'
import addFormatsModule from 'ajv-formats'

// The package has its function as the default export of CommonJS, which TypeScript and Node resolve differently.
export const addFormats = 'default' in addFormatsModule ? addFormatsModule.default : addFormatsModule

const ajv = new Ajv({ strict: false, logger: false })
addFormats(ajv)
const tests = new Map<string, ValidateFunction>()

/** Whether a text has the format of a JSON schema (`date`, `uuid`); true for unknown formats. */
export function isFormat(format: string, text: string): boolean {
  if (!Object.hasOwn(ajv.formats, format)) return true
  let test = tests.get(format)
  if (test === undefined) {
    test = ajv.compile({ type: 'string', format })
    tests.set(format, test)
  }
  return test(text)
}
