import type { Plugin } from 'rolldown'

const SHIMS = '@modelcontextprotocol/server/_shims'

/**
 * Leaves out the copy of ajv that is part of the SDK of the Model Context Protocol: 200 kB. Only `fromJsonSchema`, and answers to elicitations,
 * are validated with it. The tools use neither.
 */
export const withoutValidator: Plugin = {
  name: 'without-validator',
  resolveId: (id) => (id === SHIMS ? `\0${SHIMS}` : null),
  load(id) {
    if (id !== `\0${SHIMS}`) return null
    return `
      export { default as process } from 'node:process'
      export class DefaultJsonSchemaValidator {
        getValidator() {
          throw new Error('this build has no validator of JSON Schema')
        }
      }`
  },
}
