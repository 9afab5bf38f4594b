"""What copies draw by chance: of generators that were made before they were forked, too."""

import os

from harness import HANDLER, ROW, ZYGOTE, Case, Worker


class Chance(Case):
    def test_each_copy_that_answers_messages_draws_its_own(self):
        text = """
            MADE = Random.new
            SEEDED = Random.new(1)
            def handle(payload) = [MADE.rand, SEEDED.rand, rand]
        """
        target = self.write("handler.rb", text) + ":handle"
        seen = []
        with Worker(ROW, ZYGOTE, HANDLER, target, cwd=self.place) as zygote:
            for paid in (1, 2, 1):
                channel, pidfd, _ = zygote.copy(paid)
                _, drawn = channel.ask(1, b"")
                seen.append(drawn[1:-1].split(b","))
                channel.close()
                zygote.gone()
                os.close(pidfd)
        # What was seeded on purpose is the same in all.
        self.assertEqual([len(set(column)) for column in zip(*seen)], [3, 1, 3])
