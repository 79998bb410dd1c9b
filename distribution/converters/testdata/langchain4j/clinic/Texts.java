package clinic;

import dev.langchain4j.model.output.structured.Description;
import dev.langchain4j.memory.chat.*;
import java.util.List;

final class Texts {
    static final String RULES = "You answer for a clinic.";
    static final int LIMIT = 12;

    ChatMemory memory() {
        return MessageWindowChatMemory.builder().maxMessages(LIMIT).alwaysKeepSystemMessageFirst(true).fancy(1).build();
    }

    int unrelated(int a) {
        return a + 1;
    }
}

enum Ward { NORTH, SOUTH }

@Description("A person")
class Guest {
    static int count = 0;
    @Description("first and last name")
    String name;
    private int age;
    List<String> complaints;
    Ward ward;
    Object rest;

    String getName() {
        return name;
    }
}
