import type { Plugin } from 'rolldown'
import { minify } from 'rolldown/utils'

/** Minifies only the chunks of these names, so that stack traces show the project's own code unchanged. */
export function minified(chunkNames: readonly string[]): Plugin {
  return {
    name: 'minified',
    async renderChunk(code, { name, fileName }) {
      if (!chunkNames.includes(name)) return null
      const result = await minify(fileName, code, { mangle: { keepNames: true }, module: true })
      const [problem] = result.errors
      if (problem !== undefined) throw problem
      return { code: result.code, map: null }
    },
  }
}
