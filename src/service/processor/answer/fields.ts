import { setImmediate } from 'node:timers/promises'
import type { FieldBasis } from '../../../protocol/output.ts'
import type { Isolated } from '../../isolated/isolated.ts'
import { emptyAnswer, takeAnswer } from './answer.ts'
import { basisOf, elementBasisOf, type Finding } from './basis.ts'
import { type EvidenceSearch, findEvidence, type Inquiry } from '../evidence/evidence.ts'
import type { PatternMatcher } from '../schema/pattern.ts'
import type { ProcessorResult } from '../processor.ts'
import type { Reporter } from './reporter.ts'
import { UNIT_WORDS } from './quantities.ts'
import type { FieldSpec } from '../schema/schema.ts'
import { wantedOf, withoutExample } from './shapes.ts'
import { splitName } from '../words/vocabulary.ts'
import { UNKNOWN } from './unknown.ts'

/** Settings of {@link extractFields}. */
export interface FieldsOptions {
  readonly search: EvidenceSearch
  readonly schema: Readonly<Record<string, unknown>>
  /** Whether the basis has an entry for each element of a list too (§2.3). */
  readonly elementBasis: boolean
  /** Reads the schema. */
  readonly isolated: Pick<Isolated, 'readSchema'>
  /** Matches the patterns of the schema. */
  readonly patterns: PatternMatcher
  readonly reporter: Reporter
  readonly signal: AbortSignal
}

/**
 * Searches for each field of a schema. Throws if a required field has no value that its schema allows; the answer may still
 * violate rules between fields.
 */
export async function extractFields(options: FieldsOptions): Promise<ProcessorResult> {
  const { content: spec, warnings } = await options.isolated.readSchema(options.schema)
  const objects = [spec, ...spec.alternatives].filter(({ kind }) => kind === 'object')
  options.reporter.plan(Math.max(0, ...objects.map(countFields)), fieldNames(objects))
  const isOnly = objects.length === 1 && countFields(spec) === 1
  const extraction = await extractField({ ...options, isOnly }, spec, [])
  if (extraction.missing !== undefined)
    throw new Error(`${UNKNOWN} what the output schema requires. ${extraction.missing}`)

  const basis: FieldBasis[] = []
  for (const property of extraction.spec.properties) {
    const findings = extraction.findings.filter(({ top }) => top === property.name)
    basis.push(basisOf(property, findings))
    if (options.elementBasis) basis.push(...elementBasisOf(findings))
  }
  return {
    output: { type: 'json', content: Object.fromEntries(extraction.entries), basis },
    ...(warnings.length > 0 && { warnings }),
  }
}

/** Settings of the search for a field. */
interface FieldOptions extends FieldsOptions {
  /** Whether the schema has no other field, so that the input asks for this one. */
  readonly isOnly: boolean
}

/** A finding, with the name of its top-level field. */
interface FieldFinding extends Finding {
  readonly top: string
}

/** The value of a field, found or empty. */
interface ExtractedField {
  /** The alternative that the value follows. */
  readonly spec: FieldSpec
  /** Undefined to omit the field. */
  readonly value: unknown
  /** The members of the value, if it is an object. */
  readonly entries: readonly [string, unknown][]
  /** The finding for each field that is not an object. */
  readonly findings: readonly FieldFinding[]
  /** Why there is no value that the schema allows. */
  readonly missing: string | undefined
}

async function extractField(
  options: FieldOptions,
  spec: FieldSpec,
  names: readonly string[],
): Promise<ExtractedField> {
  const choices = [spec, ...spec.alternatives]
  if (!choices.some(({ kind }) => kind === 'object')) return await extractValue(options, spec, names)

  let best: ExtractedField | undefined
  for (const choice of choices) {
    const one = { ...choice, alternatives: [] }
    const extraction =
      choice.kind === 'object'
        ? await extractObject(options, one, names)
        : await extractValue(options, one, names)
    const isAnswered = extraction.findings.some(({ answer }) => answer !== undefined)
    if (extraction.missing === undefined && isAnswered) return extraction
    if (best === undefined || (best.missing !== undefined && extraction.missing === undefined))
      best = extraction
  }
  return best ?? (await extractObject(options, spec, names))
}

async function extractObject(
  options: FieldOptions,
  spec: FieldSpec,
  names: readonly string[],
): Promise<ExtractedField> {
  const entries: [string, unknown][] = []
  const findings: FieldFinding[] = []
  let missing: string | undefined
  for (const property of spec.properties) {
    const inner = await extractField(options, property, [...names, property.name])
    if (inner.missing === undefined && inner.value !== undefined) entries.push([property.name, inner.value])
    findings.push(...inner.findings)
    if (property.required) missing ??= inner.missing
  }
  const content = { spec, entries, findings }
  if (missing === undefined) return { ...content, value: Object.fromEntries(entries), missing }
  // An object that cannot be complete is null or omitted, if its schema allows that.
  if (spec.nullable) return { ...content, value: null, missing: undefined }
  return { ...content, value: undefined, missing }
}

async function extractValue(
  { search, patterns, reporter, signal, isOnly }: FieldOptions,
  spec: FieldSpec,
  names: readonly string[],
): Promise<ExtractedField> {
  // Yields to the event loop between two fields.
  await setImmediate()
  signal.throwIfAborted()
  const path = names.join('.')
  const name = names.map(splitName).join(' ')
  const found = findEvidence(search, { name, isOnly, ...inquiryOf(name, spec) })
  const field = {
    name,
    description: spec.description,
    input: search.subject.text,
    subject: search.subject.names,
  }
  const answer = await takeAnswer(spec, { found, field, patterns })
  reporter.searched(path, found, answer)
  const value = answer === undefined ? emptyAnswer(spec) : answer.value
  const missing =
    value === undefined && spec.required
      ? `${path || 'The content'}: it is required, and nothing was found for it that its schema allows (${expected(spec)})`
      : undefined
  return { spec, value, entries: [], findings: [{ spec, path, found, answer, top: names[0] ?? '' }], missing }
}

/** The question to the documents for a field: its description without examples, and the word for the kind of its value. */
export function inquiryOf(name: string, spec: FieldSpec): Omit<Inquiry, 'name' | 'isOnly'> {
  const wanted =
    spec.kind === 'string' || spec.kind === 'array' ? wantedOf(name, spec.description) : undefined
  const shape = typeof wanted === 'object' ? wanted : undefined
  return {
    text: withoutExample(spec.description).replaceAll(/\bNode\.js\b/g, 'Node'),
    wantsNumber: isNumeric(spec),
    ...(isNumeric(spec) && { kindWords: `major number amount count total integer ${UNIT_WORDS}` }),
    ...(wanted === 'statement' && {
      kindWords: 'sentence summary description explanation paragraph statement word',
    }),
    ...(shape !== undefined && {
      kindWords: `${shape.nouns} ${shape.qualifiers ?? ''}`,
      otherForms: FORMS_OF_SHAPES.filter((form) => form !== shape.name),
    }),
  }
}

/** Forms that are the names of shapes too. */
const FORMS_OF_SHAPES = ['command', 'date', 'address'] as const

function isNumeric({ kind, alternatives }: FieldSpec): boolean {
  return kind === 'number' || kind === 'integer' || alternatives.some(isNumeric)
}

/** The allowed values of a field, in words. */
function expected(spec: FieldSpec): string {
  return [spec, ...spec.alternatives]
    .map(({ kind, allowed, format, pattern }) => {
      if (allowed !== undefined) return allowed.length === 0 ? 'no value' : 'one of its values'
      return [kind, format && `of the format ${format}`, pattern !== undefined && 'of its pattern']
        .filter((part) => typeof part === 'string')
        .join(' ')
    })
    .join(' or ')
}

function countFields({ properties, kind }: FieldSpec): number {
  return kind === 'object' ? properties.reduce((sum, property) => sum + countFields(property), 0) : 1
}

function fieldNames(objects: readonly FieldSpec[]): string[] {
  return [...new Set(objects.flatMap(({ properties }) => properties.map(({ name }) => name)))]
}
