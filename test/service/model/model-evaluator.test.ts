import type { FindAllCandidate } from 'rivulet'
import { describe, expect, it } from 'vitest'
import { extractiveEvaluator } from '../../../src/service/find-all/evaluate.ts'
import type { EntityPassage } from '../../../src/service/find-all/entity-text.ts'
import { modelEvaluator } from '../../../src/service/model/model-evaluator.ts'
import { stemsOf } from '../../../src/service/processor/words/vocabulary.ts'
import { findAllService, LIBRARIES, packageFolder } from '../find-all/caller.ts'
import { type ModelBehaviour, modelServer, streamReply } from './model-server.ts'

const STREAMS = { 'streams/README.md': '# streams\n\nA library of streams for TypeScript.\n' }
const MET = {
  answer: { typescript: { is_matched: true, value: 'for TypeScript' } },
  quotes: [{ field: 'typescript', passage: 1, quote: 'A library of streams for TypeScript.' }],
}

/** The candidates of a FindAll run whose conditions a model judges that behaves so. */
async function judged(
  files: Readonly<Record<string, string>>,
  ...behaviours: readonly [ModelBehaviour, ...ModelBehaviour[]]
) {
  const { url, received } = await modelServer(...behaviours)
  const docs = [{ folder: await packageFolder(files), site: 'https://docs.example' }]
  const service = await findAllService({ docs, model: { url, name: 'tiny' }, processor: undefined })
  const id = await service.create()
  await service.events(id)
  const { candidates } = await service.result(id)
  return { candidates, received }
}

describe('a candidate whose conditions a model judges', () => {
  it('matches with a quote that stands in its documents', async () => {
    const { candidates, received } = await judged(STREAMS, MET)

    expect(candidates).toMatchObject([
      {
        name: 'streams',
        match_status: 'matched',
        output: { typescript: { value: 'for TypeScript', type: 'match_condition', is_matched: true } },
        basis: [
          {
            field: 'typescript',
            confidence: 'high',
            citations: [
              {
                url: 'https://docs.example/streams/README.md',
                excerpts: ['A library of streams for TypeScript.'],
              },
            ],
          },
        ],
      },
    ])
    expect(received).toHaveLength(1)
    expect(received[0]?.body.messages[1]?.content).toContain('The library is for TypeScript')
  })

  it('is not known to match, and has no value, when the quote of a condition is fabricated', async () => {
    const quote = 'It is written in TypeScript, as everybody knows.'
    const { candidates } = await judged(STREAMS, {
      ...MET,
      quotes: [{ field: 'typescript', passage: 1, quote }],
    })

    expect(candidates).toMatchObject([
      {
        match_status: 'unmatched',
        output: { typescript: { value: null, is_matched: null } },
        basis: [{ citations: [], confidence: 'low', reasoning: expect.stringContaining('has no quote') }],
      },
    ])
    expect(JSON.stringify(candidates)).not.toContain('everybody')
  })

  it('does not match with the quote of another condition alone', async () => {
    const { url } = await modelServer({
      answer: { ...MET.answer, fast: { is_matched: true, value: 'fast' } },
      quotes: MET.quotes,
    })
    const docs = [{ folder: await packageFolder(STREAMS), site: 'https://docs.example' }]
    const service = await findAllService({ docs, model: { url, name: 'tiny' }, processor: undefined })
    const match_conditions = [...LIBRARIES.match_conditions, { name: 'fast', description: 'It is fast' }]
    const id = await service.create({ match_conditions })
    await service.events(id)
    const { candidates } = await service.result(id)

    expect(candidates).toMatchObject([
      {
        match_status: 'unmatched',
        output: { typescript: { is_matched: true }, fast: { is_matched: null, value: null } },
      },
    ])
  })

  it('is judged by the second reply when the first is broken', async () => {
    const { candidates, received } = await judged(STREAMS, '{"answer": {"typescr', MET)

    expect(candidates).toMatchObject([{ match_status: 'matched' }])
    expect(received).toHaveLength(2)
    expect(received[1]?.body.messages.at(-1)?.content).toContain('no JSON object')
  })

  it.each<[string, ModelBehaviour, RegExp]>([
    ['replies with broken JSON', '{"answer"', /no JSON object/],
    ['leaves a condition out', { answer: {}, quotes: [] }, /no .* for "typescript"/],
    ['replies with a text', { answer: 'yes', quotes: MET.quotes }, /for "typescript"/],
    ['replies with another type', { answer: { typescript: { is_matched: 'yes' } } }, /for "typescript"/],
    ['refuses', (response) => void response.writeHead(401).end(), /answered with 401/],
  ])('is judged by words, with the reason, where the model %s', async (_, behaviour, reason) => {
    const { candidates } = await judged(STREAMS, behaviour)

    expect(candidates).toMatchObject([
      {
        match_status: 'matched',
        basis: [{ reasoning: expect.stringMatching(reason), citations: [{}] }],
      },
    ])
  })

  it('is enriched by the model too', async () => {
    const { url } = await modelServer((response, request) => {
      const isEnrichment = JSON.stringify(request.body.messages).includes('satisfies this JSON Schema')
      const enriched = {
        answer: { language: 'TypeScript' },
        quotes: [{ field: 'language', passage: 1, quote: 'TypeScript' }],
      }
      streamReply(response, JSON.stringify(isEnrichment ? enriched : MET))
    })
    const docs = [{ folder: await packageFolder(STREAMS), site: 'https://docs.example' }]
    const service = await findAllService({ docs, model: { url, name: 'tiny' }, processor: undefined })
    const id = await service.create()
    await service.post(`/runs/${id}/enrich`, {
      output_schema: {
        type: 'json',
        json_schema: { type: 'object', properties: { language: { type: 'string' } } },
      },
    })
    await service.events(id)
    const { candidates } = await service.result(id)

    expect(candidates).toMatchObject([{ output: { language: { value: 'TypeScript', type: 'enrichment' } } }])
  })
})

describe('the evaluator with a model', () => {
  const candidate: FindAllCandidate = {
    candidate_id: 'candidate_1',
    name: 'streams',
    url: 'https://docs.example/streams/README.md',
    match_status: 'generated',
  }
  const passage = (text: string): EntityPassage => ({
    url: candidate.url,
    title: 'streams',
    text,
    stems: stemsOf(text),
  })
  const open = new AbortController().signal

  it('does not ask a server again that has just failed', async () => {
    let requests = 0
    const complete = async () => {
      requests += 1
      throw new Error('the server is busy')
    }
    const evaluator = modelEvaluator({ complete }, extractiveEvaluator)
    const passages = [passage('A library for TypeScript.')]
    const first = await evaluator.evaluate(candidate, LIBRARIES, passages, open)
    const second = await evaluator.evaluate(candidate, LIBRARIES, passages, open)

    expect(requests).toBe(1)
    for (const [verdict] of [first, second]) expect(verdict?.basis.reasoning).toContain('the server is busy')
  })

  it('shows a bounded number of passages, those with the words of a condition first', async () => {
    let prompt = ''
    const complete = async (messages: readonly { readonly content: string }[]) => {
      prompt = messages.map(({ content }) => content).join('\n')
      return JSON.stringify(MET)
    }
    const filler = Array.from({ length: 100 }, (_, index) =>
      passage(`Filler ${index} ${'and more '.repeat(100)}`),
    )
    const passages = [...filler, passage('It was written for TypeScript.')]
    await modelEvaluator({ complete }, extractiveEvaluator).evaluate(candidate, LIBRARIES, passages, open)

    expect(prompt).toContain('It was written for TypeScript.')
    expect(prompt.length).toBeLessThan(40_000)
  })

  it('rejects with the reason when the run is cancelled', async () => {
    const controller = new AbortController()
    const complete = async () => {
      controller.abort(new Error('cancelled'))
      throw new Error('other')
    }
    const evaluation = modelEvaluator({ complete }, extractiveEvaluator).evaluate(
      candidate,
      LIBRARIES,
      [passage('x')],
      controller.signal,
    )

    await expect(evaluation).rejects.toThrow('cancelled')
  })
})
