// node watch.mjs [--socket PATH] LIST [COUNT]: prints the events of a list as they happen, COUNT of them.

import { Client, socketPath } from './punchlist.mjs'

const words = process.argv.slice(2)
const path = words[0] === '--socket' ? words.splice(0, 2)[1] : socketPath()
const [list, count = Infinity] = words
if (!list) {
  console.error('usage: node watch.mjs [--socket PATH] LIST [COUNT]')
  process.exit(2)
}

const fail = (error) => {
  console.error(`${error.kind}: ${error.message}`)
  process.exit(1)
}
const client = new Client(path)
let left = Number(count)
const onEvent = ({ seq, event }) => {
  console.log(`${seq} ${event.type}`)
  if (--left === 0) client.close()
}
await client.follow(list, onEvent, fail).catch(fail)
console.log(`following ${list}`)
