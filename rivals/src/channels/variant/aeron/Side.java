// SPDX-License-Identifier: MIT OR Apache-2.0
// One side of an exchange over Aeron IPC, told by lines what to do: "KIND SHARED WARM COUNT", KIND 0 for round trips and 1 for a
// stream one way, SHARED 1 if both sides have one CPU. `aeron.rs` reads the answers. The messages are those of `letter.rs`.

import io.aeron.Aeron;
import io.aeron.FragmentAssembler;
import io.aeron.Publication;
import io.aeron.Subscription;
import io.aeron.driver.MediaDriver;
import io.aeron.driver.ThreadingMode;
import io.aeron.logbuffer.FragmentHandler;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.BackoffIdleStrategy;
import org.agrona.concurrent.UnsafeBuffer;

public final class Side {
    private static final long SPREAD = 0x9e3779b97f4a7c15L;
    private static final long NUMBER = (1L << 48) - 1;

    private final int size;
    private final UnsafeBuffer letter;
    private final long middle;
    private final Publication out;
    private final Subscription in;
    private final FragmentHandler handler;
    private boolean shared;
    private long expected, received, missing, repeated, corrupt;

    private Side(int size, Publication out, Subscription in) {
        this.size = size;
        this.out = out;
        this.in = in;
        letter = new UnsafeBuffer(ByteBuffer.allocateDirect(size).order(ByteOrder.nativeOrder()));
        for (int at = 0; at < size; at += 8) {
            letter.putLong(at, (at / 8 + 1) * SPREAD);
        }
        middle = sum(letter, 0);
        handler = new FragmentAssembler((buffer, offset, length, header) -> take(buffer, offset, length), size);
    }

    private static long first(long number) {
        return number | (number * SPREAD) >>> 48 << 48;
    }

    private long sum(DirectBuffer buffer, int offset) {
        long sum = 0;
        for (int at = offset + 8; at < offset + size - 8; at += 8) {
            sum += buffer.getLong(at);
        }
        return sum;
    }

    private void take(DirectBuffer buffer, int offset, int length) {
        received++;
        long word = buffer.getLong(offset);
        long number = word & NUMBER;
        boolean whole = length == size && word == first(number)
            && (size < 16 || buffer.getLong(offset + size - 8) == ~(number * SPREAD)) && sum(buffer, offset) == middle;
        if (!whole) {
            corrupt++;
            expected++;
        } else if (number > expected) {
            missing += number - expected;
            expected = number + 1;
        } else if (number < expected) {
            repeated++;
        } else {
            expected++;
        }
    }

    private void idle() {
        if (shared) {
            Thread.yield();
        } else {
            Thread.onSpinWait();
        }
    }

    private void send(long number) {
        letter.putLong(0, first(number));
        if (size >= 16) {
            letter.putLong(size - 8, ~(number * SPREAD));
        }
        while (out.offer(letter, 0, size) < 0) {
            idle();
        }
    }

    private void receive(long until) {
        while (received < until) {
            if (in.poll(handler, 1) == 0) {
                idle();
            }
        }
    }

    // The numbers after "done": start, end, received, missing, repeated, corrupt; then each round trip.
    private String call(boolean stream, long warm, int count) {
        long[] took = new long[stream ? 0 : count];
        for (long number = 0; number < warm; number++) {
            send(number);
            receive(number + 1);
        }
        long start = System.nanoTime();
        long before = start;
        for (int at = 0; at < count; at++) {
            send(warm + at);
            if (!stream) {
                receive(warm + at + 1);
                long now = System.nanoTime();
                took[at] = now - before;
                before = now;
            }
        }
        StringBuilder line = report(start, before);
        for (long time : took) {
            line.append(' ').append(time);
        }
        return line.toString();
    }

    private String answer(boolean stream, long warm, int count) {
        for (long number = 0; number < warm + (stream ? 0 : count); number++) {
            receive(number + 1);
            send(number);
        }
        receive(warm + count);
        return report(0, System.nanoTime()).toString();
    }

    private StringBuilder report(long start, long end) {
        StringBuilder line = new StringBuilder("done");
        for (long word : new long[] {start, end, received, missing, repeated, corrupt}) {
            line.append(' ').append(word);
        }
        return line;
    }

    private static void serve(boolean calls, int size, String folder) {
        // The driver's conductor is not on the messages' way: it sleeps between its looks.
        MediaDriver driver = calls ? MediaDriver.launch(new MediaDriver.Context().aeronDirectoryName(folder)
            .dirDeleteOnStart(true).dirDeleteOnShutdown(true).threadingMode(ThreadingMode.SHARED)
            .sharedIdleStrategy(new BackoffIdleStrategy(1, 1, 1_000_000, 1_000_000))) : null;
        try (Aeron aeron = Aeron.connect(new Aeron.Context().aeronDirectoryName(folder));
             Publication out = aeron.addExclusivePublication("aeron:ipc", calls ? 1 : 2);
             Subscription in = aeron.addSubscription("aeron:ipc", calls ? 2 : 1)) {
            while (!out.isConnected() || !in.isConnected()) {
                Thread.sleep(1);
            }
            Side side = new Side(size, out, in);
            System.out.println("ready");
            BufferedReader orders = new BufferedReader(new InputStreamReader(System.in));
            for (String line = orders.readLine(); line != null && !line.equals("end"); line = orders.readLine()) {
                String[] words = line.split(" ");
                side.shared = words[1].equals("1");
                side.expected = side.received = side.missing = side.repeated = side.corrupt = 0;
                boolean stream = words[0].equals("1");
                long warm = Long.parseLong(words[2]);
                int count = Integer.parseInt(words[3]);
                System.out.println(calls ? side.call(stream, warm, count) : side.answer(stream, warm, count));
            }
        } catch (Exception error) {
            System.err.println(error);
            System.exit(1);
        } finally {
            if (driver != null) {
                driver.close();
            }
        }
    }

    public static void main(String[] words) throws InterruptedException {
        // By its name the other side finds the thread to pin.
        Thread side = new Thread(() -> serve(words[0].equals("calls"), Integer.parseInt(words[1]), words[2]), "aeron-side");
        side.start();
        side.join();
    }
}
