/** The source of a passage. */
export interface Source {
  readonly url: string
  readonly title: string | undefined
  readonly excerpts: readonly string[]
}

/** Why a field of an output has its value. */
export interface Evidence {
  readonly field: string
  readonly reasoning: string
  readonly confidence: string | undefined
  readonly sources: readonly Source[]
}

/** An output as the page shows it. */
export type ShownOutput =
  | { readonly kind: 'text'; readonly text: string; readonly evidence: readonly Evidence[] }
  | {
      readonly kind: 'fields'
      readonly fields: readonly (readonly [name: string, value: unknown])[]
      readonly evidence: readonly Evidence[]
    }
  | { readonly kind: 'none' }

/** Levels of confidence, the lowest one first. */
const LEVELS = ['low', 'medium', 'high']

type Json = Readonly<Record<string, unknown>>

/** Whether the value is a JSON object. */
export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** An output of the service, whose parts may all be absent or of another type. */
export function readOutput(output: unknown): ShownOutput {
  if (!isObject(output)) return { kind: 'none' }
  const evidence = list(output['basis']).flatMap(readEvidence)
  const content = output['content']
  if (isObject(content)) return { kind: 'fields', fields: Object.entries(content), evidence }
  if (typeof content === 'string') return { kind: 'text', text: content, evidence }
  return content == null ? { kind: 'none' } : { kind: 'fields', fields: [['output', content]], evidence }
}

function readEvidence(basis: unknown): Evidence[] {
  if (!isObject(basis) || typeof basis['field'] !== 'string') return []
  const confidence = text(basis['confidence'])
  return [
    {
      field: basis['field'],
      reasoning: text(basis['reasoning']),
      confidence: confidence === '' ? undefined : confidence,
      sources: list(basis['citations']).flatMap(readSource),
    },
  ]
}

function readSource(citation: unknown): Source[] {
  if (!isObject(citation) || typeof citation['url'] !== 'string') return []
  const title = text(citation['title']).trim()
  const excerpts = list(citation['excerpts'])
    .map(text)
    .filter((excerpt) => excerpt !== '')
  return [{ url: citation['url'], title: title === '' ? undefined : title, excerpts }]
}

/** The lowest confidence of these fields; undefined if none has one of the known levels. */
export function lowestConfidence(evidence: readonly Evidence[]): string | undefined {
  return LEVELS.find((level) => evidence.some(({ confidence }) => confidence === level))
}

/** The number of sources, each address once. */
export function countSources(evidence: readonly Evidence[]): number {
  return new Set(evidence.flatMap(({ sources }) => sources.map(({ url }) => url))).size
}

/** A summary of an output: one line of at most `length` characters, without the marks of Markdown. */
export function summaryOf(output: unknown, length = 200): string {
  const shown = readOutput(output)
  if (shown.kind === 'none') return ''
  if (shown.kind === 'text') return oneLine(withoutMarks(shown.text.slice(0, length * 4)), length)
  return oneLine(
    shown.fields
      .flatMap(([, value]) => (isScalar(value) ? [String(value)] : list(value).filter(isScalar).map(String)))
      .filter((value) => value !== '')
      .join(' · '),
    length,
  )
}

/** A text without the marks of headings, quotations, lists, code and emphasis. */
function withoutMarks(markdown: string): string {
  return markdown
    .replaceAll(/^\s*(?:#{1,6}|>|[-*+])\s+/gm, '')
    .replaceAll(/^\s*```.*$/gm, '')
    .replaceAll(/\*\*|`/g, '')
}

function isScalar(value: unknown): value is string | number | boolean {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
}

/** A text in one line, cut at `length` characters. */
export function oneLine(value: string, length: number): string {
  // Only what can be shown is looked at, however long the text is.
  const line = value
    .slice(0, length * 4)
    .replaceAll(/\s+/g, ' ')
    .trim()
  return line.length > length ? `${line.slice(0, length).toWellFormed().trimEnd()}…` : line
}
