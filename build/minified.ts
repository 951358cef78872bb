import type { Plugin } from 'rolldown'
import { minify } from 'rolldown/utils'

/** Minifies only the chunk of this name, so that stack traces show the project's own code unchanged. */
export function minified(chunkName: string): Plugin {
  return {
    name: 'minified',
    async renderChunk(code, { name, fileName }) {
      if (name !== chunkName) return null
      const result = await minify(fileName, code, { mangle: { keepNames: true }, module: true })
      const [problem] = result.errors
      if (problem !== undefined) throw problem
      return { code: result.code, map: null }
    },
  }
}
