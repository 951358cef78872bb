import { markedResult, markedText } from './marked-result.ts'
import type { Research } from './research.ts'
import { MAX_TEXT } from './research-tools.ts'

/** Something to read, by an id or a URL. */
export interface ReadableResource {
  /** With one variable: `rivulet://runs/{run_id}`. */
  readonly template: string
  readonly name: string
  readonly description: string
  /** Resolves with the text, marked as data; undefined if there is none. */
  read(id: string, signal: AbortSignal): Promise<string | undefined>
}

/** Documents, and the results of runs. */
export function researchResources({ extract, tasks, findAll }: Research): readonly ReadableResource[] {
  return [
    {
      template: 'rivulet://documents/{url}',
      name: 'document',
      description: 'The content of a page as Markdown, by its percent-encoded URL.',
      async read(url, signal) {
        const advanced_settings = { full_content: { max_chars_per_result: MAX_TEXT } }
        const { results } = await extract({ urls: [url], advanced_settings }, { signal })
        const text = results[0]?.full_content
        return text == null ? undefined : markedText(text)
      },
    },
    {
      template: 'rivulet://runs/{run_id}',
      name: 'run',
      description:
        'A run of research, as JSON: its state, and its output with citations once it has completed.',
      async read(id, signal) {
        const run = await tasks.get(id, { signal })
        if (run.status !== 'completed') return markedResult({ run, output: null }).text
        return markedResult(await tasks.result(id, { signal })).text
      },
    },
    {
      template: 'rivulet://findall/{findall_id}',
      name: 'find_all',
      description: 'A run of find_all, as JSON: its state, and its candidates so far.',
      read: async (id, signal) => markedResult(await findAll.result(id, { signal })).text,
    },
  ]
}
