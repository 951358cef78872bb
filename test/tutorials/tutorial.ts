import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '../package/build.ts'

/** A fenced block of a tutorial: commands to type, a file to paste, or what the reader sees. */
export interface Block {
  readonly kind: 'commands' | 'file' | 'seen'
  /** The name of a file, from its first line. */
  readonly file: string
  readonly text: string
}

/** The blocks of a tutorial, in order. */
export function blocksOf(page: string): Block[] {
  const text = readFileSync(join(ROOT, 'docs/tutorials', page), 'utf8')
  return [...text.matchAll(/^```(?<language>\w+)\n(?<text>[^]*?)^```$/gm)].map(({ groups }) => {
    const { language = '', text: block = '' } = groups ?? {}
    if (language === 'sh') return { kind: 'commands', file: '', text: block }
    if (language === 'text') return { kind: 'seen', file: '', text: block.trim() }
    const [, file] = /^\/\/ (\S+)\n/.exec(block) ?? []
    if (file === undefined) throw new Error(`a block of ${page} does not name its file: ${block}`)
    return { kind: 'file', file, text: block }
  })
}

/** What the reader sees as a pattern: `…` stands for anything within a line, and the port for any other one. */
export function patternOf(seen: string): RegExp {
  const escaped = seen.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)
  return new RegExp(
    `^${escaped.replaceAll('…', '.+').replaceAll('localhost:3000', String.raw`localhost:\d+`)}$`,
  )
}
