/**
 * Counts the words of the pages, and writes them into docs/internals/documentation.md: `npm run docs:words`. A mark of a table is no word, and neither
 * is a comment.
 */
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'

const ROOT = resolve(import.meta.dirname, '..')
const PAGE = resolve(ROOT, 'docs/internals/documentation.md')

/** Pages that a reader of one area reads, and the most words that they may have. */
const AREAS = [
  {
    name: 'live pages',
    pages: [
      'docs/reference/{live,gateway}.md',
      'docs/guides/{secure-a-gateway,live-frameworks,deploy-a-gateway}.md',
      'docs/explanation/live.md',
    ],
    most: 4_500,
  },
  { name: 'the log', pages: ['docs/reference/log.md'], most: 3_000 },
  {
    name: 'rules',
    pages: ['docs/reference/rules.md', 'docs/guides/{test-rules,send-alerts}.md'],
    most: 3_500,
  },
  { name: 'many machines', pages: ['docs/guides/{many-machines,move-to-another-store}.md'], most: 2_500 },
  {
    name: 'stream processing',
    pages: [
      'docs/tutorials/stream-processing.md',
      'docs/reference/stream-processing.md',
      'docs/explanation/event-time.md',
    ],
    most: 4_500,
  },
  { name: 'delivery', pages: ['docs/explanation/delivery.md'], most: 1_200 },
  { name: 'the wire', pages: ['docs/reference/wire.md'], most: 4_000 },
  { name: 'the embedded service', pages: ['docs/reference/service.md'], most: 1_500 },
  { name: 'README', pages: ['README.md'], most: 1_000 },
  { name: 'all tutorials', pages: ['docs/tutorials/*.md'] },
  { name: 'all guides', pages: ['docs/guides/*.md'] },
  { name: 'all reference', pages: ['docs/reference/*.md'] },
  { name: 'all explanation', pages: ['docs/explanation/*.md'] },
  { name: 'troubleshooting', pages: ['docs/troubleshooting.md'] },
  { name: 'for maintainers', pages: ['docs/internals/*.md'] },
]

function wordsOf(text: string): number {
  const words = text.replaceAll(/<!--[^]*?-->/g, '').split(/\s+/)
  return words.filter((word) => /\w/.test(word)).length
}

const rows = AREAS.map(({ name, pages, most }) => {
  const texts = globSync(pages, { cwd: ROOT }).map((page) => readFileSync(resolve(ROOT, page), 'utf8'))
  const words = texts.reduce((sum, text) => sum + wordsOf(text), 0)
  return `| ${name} | ${words.toLocaleString('en')} | ${most?.toLocaleString('en') ?? ''} |`
})
const table = ['| Pages | Words | At most |', '| --- | --- | --- |', ...rows].join('\n')
const page = readFileSync(PAGE, 'utf8').replace(/^\| Pages [^]*?(?=\n\n|\n$)/m, table)
writeFileSync(PAGE, page)
process.stdout.write(`${table}\n`)
