/**
 * Fits the weights of the statement model from the half `tuning`, and writes them: `npm run -s quality:fit`. docs/internals/quality.md explains
 * the method. Prints what a cross-validation over subjects makes of them; `--dry` writes nothing.
 */
import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { createResearchService } from 'rivulet/service'
import { installedDocuments } from '../../../src/cli/installed.ts'
import { createIsolated } from '../../../src/service/isolated/isolated.ts'
import { RANKING_FEATURES, type StatementFeatures } from '../../../src/service/processor/evidence/features.ts'
import { createPatternMatcher } from '../../../src/service/processor/schema/pattern.ts'
import {
  ACCEPTANCE_INPUTS,
  compareStatements,
  type Featured,
} from '../../../src/service/processor/evidence/statement-model.ts'
import { readItems } from '../items.ts'
import { type Candidate, type Example, examplesOf } from './examples.ts'
import { type Linear, fitAcceptance, fitRanking, type Judgement } from './model.ts'
import type { Question } from './question.ts'

/** Number of folds. All examples of a subject are in one. */
const FOLDS = 8
/** Maximum number of wrong statements of a question that the ranking is fitted with. */
const MAX_OTHERS = 60
/** What a question counts whose answers are left out, so that the best of the others is wrong. */
const LEFT_OUT = 0.3
/** What a question counts that is asked of another subject, and how far that is in the list of subjects. */
const STRAY_WEIGHT = 0.3
const STRAY = 31
/** At least this share of the questions without an answer is "unknown" for other questions too, with a probability of 95 %. */
const MIN_UNKNOWN = 0.9
/** The same of those called `high`, which are right. */
const MIN_HIGH = 0.97
/** The same of those called `medium` or `high`. */
const MIN_MEDIUM = 0.9
/** Standard errors below a share at which its lower bound is, for 95 %. */
const ONE_SIDED = 1.645

const { values: options } = parseArgs({ options: { dry: { type: 'boolean', default: false } } })
const { examples, strays } = await readExamples()
const folds = Array.from({ length: FOLDS }, (_, fold) => fold)
const rankings = new Map<string, Linear>()

const judged = folds.flatMap((fold) => judgeFold(fold))
printRanking()
const threshold = lowest(
  0.01,
  (at) =>
    lowerBound(
      withoutAnswer().filter((one) => outcomeAt(one, at) === 'right').length,
      withoutAnswer().length,
    ) >= MIN_UNKNOWN,
)
printCurve(threshold)
const given = givenFrom(threshold)
const high = levelFrom(
  'high',
  given.filter(({ isDoubtful }) => !isDoubtful),
  MIN_HIGH,
)
const medium = levelFrom('medium', given, MIN_MEDIUM)

const ranking = rankingWithout([])
const acceptance = fitAcceptance(judgementsWithout([]))
print(`\nweights, for a standard deviation of each:`)
printWeights(ranking)
printWeights(acceptance)
if (!options.dry) write()

/** An example, ranked and judged by models that have not seen its subject. */
interface Judged {
  readonly example: Example
  /** Best first. */
  readonly ranked: readonly (Candidate & { readonly likelihood: number })[]
}

function judgeFold(fold: number): Judged[] {
  const unseen = rankingWithout([fold])
  const decides = fitAcceptance(judgementsWithout([fold]))
  return examples
    .filter((one) => foldOf(one) === fold)
    .map((example) => {
      const ranked: Judged['ranked'][number][] = []
      for (const { statement, isRight, isRelevant, isDoubtful, score, ...one } of compare(
        example.candidates,
        unseen,
      )) {
        const likelihood = 1 / (1 + Math.exp(-decides.apply(inputsOf(one))))
        ranked.push({ statement: { ...statement, score }, isRight, isRelevant, isDoubtful, likelihood })
      }
      return { example, ranked }
    })
}

function compare(candidates: readonly Candidate[], by: Linear) {
  const featured: (Candidate & Featured)[] = []
  for (const one of candidates) {
    const { unit, features } = one.statement
    featured.push({ ...one, unit, features })
  }
  return compareStatements(featured, (features) => by.apply(rankingInputs(features)))
}

function rankingInputs(features: StatementFeatures): number[] {
  return RANKING_FEATURES.map((name) => features[name])
}

function inputsOf(one: {
  readonly features: StatementFeatures
  readonly rank: number
  readonly lead: number
}): number[] {
  const inputs = { ...one.features, rank: one.rank, lead: one.lead }
  return ACCEPTANCE_INPUTS.map((name) => inputs[name])
}

function rankingWithout(left: readonly number[]): Linear {
  const key = left.toSorted().join()
  const known = rankings.get(key)
  if (known !== undefined) return known
  const fitted = fitRanking(
    examples
      .filter((one) => !left.includes(foldOf(one)) && one.candidates.some(({ isRelevant }) => isRelevant))
      .map(({ candidates }) =>
        nearest(candidates).map(({ statement, isRelevant }) => ({
          inputs: rankingInputs(statement.features),
          isRight: isRelevant,
        })),
      ),
  )
  rankings.set(key, fitted)
  return fitted
}

/** The statements with the answer, and those of the others that have most of the question. */
function nearest(candidates: readonly Candidate[]): readonly Candidate[] {
  const others = candidates.filter(({ isRelevant }) => !isRelevant)
  const near = others.toSorted((a, b) => b.statement.coverage - a.statement.coverage).slice(0, MAX_OTHERS)
  return [...candidates.filter(({ isRelevant }) => isRelevant), ...near]
}

/** Questions that are asked of another subject, which has no answer to them. */
function straysOf(items: readonly Question[]): Question[] {
  const subjects = [...new Set(items.map(({ subject }) => subject))].toSorted()
  return items.flatMap((item) => {
    const { subject, question, form } = item
    const other = subjects[(subjects.indexOf(subject) + STRAY) % subjects.length]
    if (form === 'json' || item.expect === 'unknown' || other === undefined) return []
    if (!question.includes(subject)) return []
    return [{ ...item, question: question.replaceAll(subject, other), expect: 'unknown' }]
  })
}

/** What the acceptance is fitted with: statements that are the best, as ranked by a model that has not seen their subject. */
function judgementsWithout(left: readonly number[]): Judgement[] {
  const judgements: Judgement[] = []
  for (const fold of folds.filter((one) => !left.includes(one))) {
    const unseen = rankingWithout([...left, fold])
    const add = (candidates: readonly Candidate[], weight: number) => {
      const [best] = compare(candidates, unseen)
      if (best !== undefined) judgements.push({ inputs: inputsOf(best), isRight: best.isRelevant, weight })
    }
    for (const { candidates } of examples.filter((one) => foldOf(one) === fold)) {
      const others = candidates.filter(({ isRelevant }) => !isRelevant)
      add(candidates, 1)
      if (others.length < candidates.length) add(others, LEFT_OUT)
    }
    for (const { candidates } of strays.filter((one) => foldOf(one) === fold)) add(candidates, STRAY_WEIGHT)
  }
  return judgements
}

function foldOf({ subject }: Example): number {
  return (createHash('sha256').update(`fold ${subject}`).digest()[0] ?? 0) % FOLDS
}

async function readExamples() {
  await using service = await createResearchService({
    ...(await installedDocuments()),
    apiKey: 'none',
    quotas: false,
  })
  await service.corpus.settled()
  const isolated = createIsolated()
  try {
    const items = readItems<Question>('questions', 'tuning')
    const patterns = createPatternMatcher(isolated)
    return {
      examples: await examplesOf(service.corpus, items, patterns),
      strays: await examplesOf(service.corpus, straysOf(items), patterns),
    }
  } finally {
    await isolated.close()
  }
}

function outcomeAt({ example, ranked }: Judged, likelihood: number) {
  return example.outcomeOf(ranked.filter((one) => one.likelihood >= likelihood))
}

function withAnswer(): readonly Judged[] {
  return judged.filter(({ example }) => example.isAnswerable)
}

function withoutAnswer(): readonly Judged[] {
  return judged.filter(({ example }) => !example.isAnswerable)
}

function shareOf(some: readonly Judged[], is: (one: Judged) => boolean): number {
  return some.filter(is).length / Math.max(1, some.length)
}

/** The least share that some of all are likely to stand for: the lower end of the Wilson interval. */
function lowerBound(some: number, all: number): number {
  if (all === 0) return 0
  const share = some / all
  const z = ONE_SIDED ** 2 / all
  return (share + z / 2 - ONE_SIDED * Math.sqrt((share * (1 - share)) / all + z / (4 * all))) / (1 + z)
}

/** The lowest hundredth at which something holds, and holds from there on. */
function lowest(from: number, holds: (at: number) => boolean): number {
  let at = 0.99
  while (at - 0.01 >= from && holds(at - 0.01)) at -= 0.01
  return Math.round(at * 100) / 100
}

function printRanking(): void {
  const some = withAnswer()
  const within = (count: number) =>
    shareOf(some, ({ ranked }) => ranked.slice(0, count).some(({ isRelevant }) => isRelevant))
  print(
    `${examples.length} questions and fields, ${FOLDS} folds by subject; all figures are of unseen subjects`,
  )
  print(
    `the answer is first: ${percent(within(1))}, in the first 2: ${percent(within(2))}, found at all: ${percent(within(Infinity))}`,
  )
}

function printCurve(chosen: number): void {
  print('accepted from   right   wrong   unknown   without an answer: unknown')
  for (const at of [0.2, 0.3, 0.4, 0.5, 0.6, chosen]) {
    const of = (outcome: string) => percent(shareOf(withAnswer(), (one) => outcomeAt(one, at) === outcome))
    const unknown = percent(shareOf(withoutAnswer(), (one) => outcomeAt(one, at) === 'right'))
    print(
      `${at.toFixed(2).padStart(13)} ${of('right').padStart(7)} ${of('wrong').padStart(7)} ${of('unknown').padStart(9)} ${unknown.padStart(9)}${at === chosen ? '  chosen' : ''}`,
    )
  }
}

/** The answers that are given, and whether they are right. */
function givenFrom(accepted: number) {
  return judged.flatMap((one) => {
    const best = one.ranked.find(({ likelihood }) => likelihood >= accepted)
    const outcome = outcomeAt(one, accepted)
    const isRight = outcome === 'right' && one.example.isAnswerable
    return best === undefined || (!isRight && outcome !== 'wrong') ? [] : [{ ...best, isRight }]
  })
}

/** The likelihood from which enough answers are right to be called so. */
function levelFrom(name: string, all: typeof given, share: number): number {
  const right = (some: typeof given) => some.filter(({ isRight }) => isRight).length
  const from = (at: number) => all.filter(({ likelihood }) => likelihood >= at)
  const hundredths = Array.from({ length: 100 }, (_, index) => index / 100)
  const chosen =
    hundredths.find((at) => at >= threshold && lowerBound(right(from(at)), from(at).length) >= share) ?? 1
  const called = from(chosen)
  print(`${name} from ${chosen}: ${right(called)} of ${called.length} right, of ${right(given)} right ones`)
  return chosen
}

function printWeights({ names, scaled }: Linear): void {
  const all = names.map((name, index) => ({ name, weight: scaled[index] ?? 0 }))
  for (const { name, weight } of all.toSorted((a, b) => Math.abs(b.weight) - Math.abs(a.weight)))
    print(`  ${name.padEnd(14)} ${weight.toFixed(2)}`)
}

function write(): void {
  const recordOf = ({ names, weights }: Linear) =>
    names.map((name, index) => `${name}: ${(weights[index] ?? 0).toFixed(3)}`).join(', ')
  writeFileSync(
    new URL('../../../src/service/processor/evidence/statement-weights.ts', import.meta.url),
    `// Written by \`npm run quality:fit\`: fitted to the questions of bench/quality/questions/tuning.json. See docs/internals/quality.md.
import type { ACCEPTANCE_FEATURES, RANKING_FEATURES } from './features.ts'

/** The log-odds that each feature adds to a statement, compared with the others of its question. */
export const RANKING: Readonly<Record<(typeof RANKING_FEATURES)[number], number>> = { ${recordOf(ranking)} }

/** The log-odds that each input adds to a statement's being the answer. */
export const ACCEPTANCE: {
  readonly bias: number
  readonly weights: Readonly<Record<(typeof ACCEPTANCE_FEATURES)[number] | 'rank' | 'lead', number>>
} = { bias: ${acceptance.bias.toFixed(3)}, weights: { ${recordOf(acceptance)} } }

/** Minimum likelihood of an answer. */
export const ACCEPTED = ${threshold}

/** Minimum likelihood of an answer that is called \`high\`. */
export const HIGH = ${high}

/** Minimum likelihood of an answer that is called \`medium\`. */
export const MEDIUM = ${medium}
`,
  )
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`
}

function print(text: string): void {
  process.stdout.write(`${text}\n`)
}
