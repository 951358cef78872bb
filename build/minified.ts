import type { Plugin } from 'rolldown'
import { minify } from 'rolldown/utils'

/** Minifies the chunk of this name, and no other: a stack trace shows the project's own code as it is written. */
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
